package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// topics are the registry's, and those it lost: what SHARDS has frames of.
func (r *Repairer) topics(ctx context.Context, only string, p *Plan) ([]found, error) {
	var out []found
	known := map[string]bool{}
	list, err := r.lists(p).Topics(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		known[t.Name] = true
		if only == "" || only == t.Name {
			out = append(out, found{topic: t})
		}
	}
	subjects, err := streams.Subjects(ctx, r.js, schemas.StreamShards, schemas.SubjectsShards)
	if err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	lost := map[string]bool{}
	for subject := range subjects {
		ref, err := schemas.ParseShardSubject(subject)
		if name := ref.Topic; err == nil && !known[name] && schemas.ValidateTopicName(name) == nil && (only == "" || only == name) {
			lost[name] = true
		}
	}
	for name := range lost {
		if has, err := registry.Lost(ctx, r.js, name); err != nil {
			return nil, err
		} else if !has {
			delete(lost, name)
		}
	}
	traces, err := r.traces(ctx, known)
	if err != nil {
		return nil, err
	}
	for name := range traces {
		if !known[name] && (only == "" || only == name) {
			lost[name] = true
		}
	}
	removals, err := r.reg.Removals(ctx)
	if err != nil {
		return nil, err
	}
	p.removals = removals
	named := lost[only]
	if err := r.leaveRemoved(ctx, lost, removals, p); err != nil {
		return nil, err
	}
	kept, err := r.remembered(ctx, lost, p)
	if err != nil {
		return nil, err
	}
	for name := range lost {
		t, has := kept[name]
		if !has {
			if t, err = r.descriptor(ctx, name, p); err != nil {
				return nil, err
			}
			if d, removed := removals[name]; removed {
				t = d.Restored(t)
			}
		}
		out = append(out, found{topic: t, lost: true})
	}
	if only != "" && len(out) == 0 && !named && !slices.ContainsFunc(p.odd, func(u *registry.UnreadableError) bool { return u.Key == schemas.TopicKey(only) }) {
		_, err := r.reg.Topic(ctx, only) // says which there are
		if err == nil {
			err = fmt.Errorf("%w: %q", schemas.ErrUnknownTopic, only)
		}
		return nil, err
	}
	slices.SortFunc(out, func(a, b found) int { return strings.Compare(a.topic.Name, b.topic.Name) })
	return out, nil
}

// leaveRemoved takes the topics out of lost that were removed, or are being removed: what there is of them was late, or comes from an older copy. A
// topic that was declared under the name since is lost like any other.
func (r *Repairer) leaveRemoved(ctx context.Context, lost map[string]bool, removals map[string]registry.Removal, p *Plan) error {
	for name := range lost {
		d, removed := removals[name]
		if !removed {
			continue
		}
		kept, err := r.db.ReadLedger(ctx)
		if err != nil {
			return err
		}
		used, err := r.reg.UsedAgain(ctx, &d, kept[schemas.TopicKey(name)].Value)
		if err != nil {
			return fmt.Errorf("repair: topic %q, which was removed: %w", name, err)
		}
		if !used {
			delete(lost, name)
			p.note("%s is left alone: it was removed, or is being removed since %s; run `almanac topics rm %s`, or declare it with `almanac topics apply %s`", name, d.Began.Format(time.RFC3339), name, name)
		}
	}
	return nil
}

// remembered are the descriptors of lost topics as ClickHouse's copy has them. Where that is lost
// too, no topic may be restored: an erasure of it may have been entered, and what it took would
// come back.
func (r *Repairer) remembered(ctx context.Context, lost map[string]bool, p *Plan) (map[string]schemas.Topic, error) {
	if len(lost) == 0 {
		return nil, nil
	}
	has, err := r.db.HasLedger(ctx)
	if err != nil {
		return nil, err
	}
	if !has && !r.nothingErased {
		for name := range lost {
			p.note("%s is left alone: %s", name, Unledgered)
			delete(lost, name)
		}
		return nil, nil
	}
	kept, err := r.db.ReadLedger(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]schemas.Topic{}
	for name := range lost {
		var t schemas.Topic
		if k := kept[schemas.TopicKey(name)]; len(k.Value) > 0 && json.Unmarshal(k.Value, &t) == nil && t.Name == name && t.Validate() == nil {
			out[name] = t
		}
	}
	return out, nil
}

// Unledgered says why a topic that the registry lost is not restored, and what helps.
const Unledgered = "the registry, its copies and ClickHouse's copy of the ledger are lost together, so what was erased is not known and might come back; restore one of the three from a copy, or, where nothing was ever erased, run `almanac repair --nothing-erased`"

// lists is the registry without the entries that are not readable, which the plan notes
// once each: they are restored like lost ones.
func (r *Repairer) lists(p *Plan) *registry.Registry {
	return r.reg.Skipping(func(err error) {
		if text := err.Error(); !slices.Contains(p.Notes, text) {
			p.note("%s", text)
			if u := (*registry.UnreadableError)(nil); errors.As(err, &u) && u.Rev > 0 {
				p.odd = append(p.odd, u)
			}
		}
	})
}

// traces are the topics that something else than frames speaks of: checkpoints of routed
// frames, tables, and head entries.
func (r *Repairer) traces(ctx context.Context, known map[string]bool) (map[string]bool, error) {
	out, err := r.reg.Mentioned(ctx)
	if err != nil {
		return nil, err
	}
	err = streams.EachCheckpoint(ctx, r.js, schemas.SubjectsRouted, func(cp *streams.Routed) error {
		if cp.Err == nil && cp.Frames > 0 && schemas.ValidateTopicName(cp.Topic) == nil {
			out[cp.Topic] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("repair: checkpoints: %w", err)
	}
	made, err := r.db.LostTopics(ctx, known, r.reg.KnownShards)
	for _, name := range made {
		out[name] = true
	}
	return out, err
}

// descriptor restores a topic's descriptor: its kind and fields from its table, its
// lanes from the checkpoints, its schema version from the frames. What nothing
// tells is a default, and noted.
func (r *Repairer) descriptor(ctx context.Context, name string, p *Plan) (schemas.Topic, error) {
	comment, err := r.db.Comment(ctx, name)
	if err != nil {
		return schemas.Topic{}, err
	}
	said, told := schemas.ParseTableComment(comment)
	if !told {
		p.note("%s: the comment of its table does not tell its kind; %s is taken", name, schemas.KindLog)
		said = schemas.TableTopic{Kind: schemas.KindLog}
	}
	t := said.Topic(name)
	cols, err := r.db.Columns(ctx, name)
	if err != nil {
		return t, err
	}
	var odd []string
	t.Fields, odd = schemas.FieldsOf(cols)
	for i, f := range t.Fields { // text and JSON are one type in a table
		if of := t.Spec().Field(f.Name); of != nil && of.Type.Wire() == f.Type.Wire() {
			t.Fields[i].Type = of.Type
		}
	}
	for _, c := range odd {
		p.note("%s: column %s is of no type a promoted field has; it is left out of the descriptor", name, c)
	}
	for i := range t.Fields {
		t.Fields[i].Since = 1
	}
	if !told {
		if t.Lanes, err = r.lanesOf(ctx, name); err != nil {
			return t, err
		}
		if t.Lanes == 0 {
			t.Lanes = schemas.DefaultLanes
			p.note("%s: neither its table nor a checkpoint says how many lanes it has; %d are taken", name, t.Lanes)
		}
	}
	sawFields := map[int]int{} // schema version: fields of its frames
	_, err = streams.Frames(ctx, r.js, schemas.ShardsFilter(name), func(ref schemas.ShardRef, pl schemas.Placed, seq uint64, _ time.Time) error {
		t.Version = max(t.Version, pl.Schema)
		if _, seen := sawFields[pl.Schema]; seen || len(sawFields) >= maxVersions {
			return nil
		}
		msg, err := streams.DecideAt(ctx, r.js, schemas.StreamShards, seq)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
		if err == nil {
			if n, ok := frame.CountFields(msg.Data); ok {
				sawFields[pl.Schema] = n
			}
		}
		return nil
	})
	if err != nil {
		return t, err
	}
	for i := range t.Fields {
		t.Fields[i].Since = since(i, t.Version, sawFields)
	}
	if t.HasIdentity() {
		p.note("%s: rotation (%d rows, %d bytes) and retention (forever) are defaults: nothing told what they were; set them with `almanac topics apply`",
			name, t.Rotate.Rows, t.Rotate.Bytes)
	} else {
		p.note("%s: rotation (%d rows, %d bytes), retention (forever) and the lane key (%s) are defaults: nothing told what they were; set them with `almanac topics apply`",
			name, t.Rotate.Rows, t.Rotate.Bytes, strings.Join(t.LaneBy, ", "))
	}
	return t, t.Validate()
}

// lanesOf is how many lanes a topic has as far as its checkpoints tell; 0: it has no checkpoint.
func (r *Repairer) lanesOf(ctx context.Context, name string) (lanes int, err error) {
	err = streams.EachCheckpoint(ctx, r.js, schemas.RoutedFilter(name), func(cp *streams.Routed) error {
		if lane, err := schemas.ParseLane(cp.Lane); err == nil {
			lanes = max(lanes, lane+1)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("repair: checkpoints of %q: %w", name, err)
	}
	return lanes, nil
}

// maxVersions bounds the schema versions of which a frame is opened.
const maxVersions = 1000

// since is the first schema version with more than i fields: the first of which a
// frame has them, or the one after the last of which a frame has not.
func since(i, newest int, saw map[int]int) int {
	v := 1
	for version, n := range saw {
		if n <= i {
			v = max(v, version+1)
		}
	}
	return min(v, newest)
}
