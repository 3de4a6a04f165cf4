package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/almanac-events/almanac/internal/fronts/archived"
	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// FrontReport compares the front of a topic with its table: what each document or timer is now.
type FrontReport struct {
	Hot     int `json:"hot"`     // records with their body; timers that are in TIMERS
	Cold    int `json:"cold"`    // stubs; timers that are over and left TIMERS
	Waiting int `json:"waiting"` // records that are not stored yet
	Differ  int `json:"differ"`
	// Erasing differ because an erasure under way takes them: Erasure is the last one met.
	Erasing int    `json:"erasing,omitempty"`
	Erasure string `json:"erasure,omitempty"`

	Timers bool `json:"timers,omitempty"` // they are timers
}

// Fronts returns a verifier that compares fronts with their tables too. It holds the last
// record of each document or timer of a topic: some 300 and 700 bytes each.
func (v *Verifier) Fronts() *Verifier {
	with := *v
	with.fronts = true
	return &with
}

// front compares a topic's front with its table.
func (v *Verifier) front(ctx context.Context, t *schemas.Topic, rep *TopicReport) error {
	switch {
	case !v.fronts || t.Front() == "":
		return nil
	case t.Kind == kinds.Timer:
		return v.frontTimers(ctx, t, rep)
	}
	upTo, err := archived.UpTo(ctx, v.js, v.reg, v.db, t)
	if err != nil {
		return err
	}
	last, err := records.LastDocuments(ctx, v.js, t)
	if err != nil {
		return err
	}
	front := &FrontReport{}
	rep.Front = front
	var doubt []string
	note := func(id string, r records.LastDocument, n *tables.Newest) {
		front.count(r.Record)
		switch compareFront(r, n, upTo) {
		case frontEqual:
		case frontWaiting:
			front.Waiting++
		default:
			doubt = append(doubt, id)
		}
	}
	for lane := range t.Lanes {
		err = v.db.NewestDocuments(ctx, t.Name, lane, nil, func(n tables.Newest) error {
			note(n.ID, last[n.ID], &n)
			delete(last, n.ID)
			return nil
		})
		if err != nil && !errors.Is(err, tables.ErrNoTable) {
			return err
		}
	}
	for id, r := range last {
		note(id, r, nil)
	}
	return v.lookAgain(ctx, t, rep, doubt, &again{
		what: "document",
		name: func(id string) string { return fmt.Sprintf("document %q", id) },
		compare: func(ctx context.Context, ids []string) (map[string]string, error) {
			return v.documentsAgain(ctx, t, ids, rep)
		},
		meant: func(ctx context.Context, e *ledger.Erasure, ids []string) ([]string, error) {
			return v.meantDocuments(ctx, t, e, ids)
		},
	})
}

// documentsAgain compares documents once more: they may have changed meanwhile. What was
// stored since counts too, so all is read again, the front first.
func (v *Verifier) documentsAgain(ctx context.Context, t *schemas.Topic, ids []string, rep *TopicReport) (map[string]string, error) {
	upTo, err := archived.UpTo(ctx, v.js, v.reg, v.db, t)
	if err != nil {
		return nil, err
	}
	subjects := make([]string, len(ids))
	for i, id := range ids {
		subjects[i] = schemas.DocSubject(t.Name, document.Lane(t, id), id)
	}
	last, newest := map[string]records.LastDocument{}, map[string]*tables.Newest{}
	var strange []string
	err = streams.LatestOf(ctx, v.js, schemas.StreamDocs, subjects, func(m *streams.Message) error {
		if _, _, id, err := schemas.DocTokens(m.Subject); err == nil {
			last[id] = records.LastDocument{At: m.Sequence}
			if r, err := document.Parse(m.Subject, m.Sequence, m.Header, m.Data, m.Size); err == nil {
				last[id] = records.LastDocument{Record: &r, Size: m.Size, At: m.Sequence}
			} else {
				strange = append(strange, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(strange) > 0 { // what is not a record lies above
		all, err := records.LastDocuments(ctx, v.js, t)
		if err != nil {
			return nil, err
		}
		for _, id := range strange {
			last[id] = all[id]
		}
	}
	for lane, some := range byLane(ids, t.DocumentLane) {
		err = v.db.NewestDocuments(ctx, t.Name, lane, some, func(n tables.Newest) error {
			newest[n.ID] = &n
			return nil
		})
		if err != nil && !errors.Is(err, tables.ErrNoTable) {
			return nil, err
		}
	}
	// Read last: what retention takes is marked before it goes.
	shards, err := v.reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return nil, err
	}
	ended, err := v.ended(ctx, t)
	if err != nil {
		return nil, err
	}
	return rep.differ(ids, func(id string) string {
		r, n := last[id].Record, newest[id]
		if expiring(shards, r, n) {
			return frontEqual
		}
		why := compareFront(last[id], n, upTo)
		if why != frontEqual && why != frontWaiting && r != nil && (n == nil || n.Seq < r.RowSeq()) {
			why += mayBeOf(ended, r.RowSeq(), r.Changed, r.User, r.Stub != nil)
		}
		return why
	}), nil
}

// expiring reports whether retention is taking a document's newest version: its record goes before its
// row. r and n are what DOCS and ClickHouse have, nil for nothing.
func expiring(shards []registry.Shard, r *document.Record, n *tables.Newest) bool {
	return slices.ContainsFunc(shards, func(s registry.Shard) bool {
		in := func(m schemas.Month, id schemas.Shard) bool { return s.Gone() && m == s.Month && id == s.ID }
		switch {
		case r == nil:
			return n != nil && in(n.Month, n.Shard)
		case n != nil:
			return false
		case r.Stub != nil:
			return in(r.Stub.Month, r.Stub.Shard)
		case r.Refresh != nil:
			return in(r.Refresh.Month, r.Refresh.Shard)
		}
		// A whole record does not say where its row is: it went since the record was read, or is lost.
		return s.Status == registry.Dropping && r.Lane == strconv.Itoa(s.ID.Lane()) && schemas.MonthOf(r.Changed) == s.Month && r.Changed <= s.MaxTs
	})
}

// differ compares keys of a front: it counts those that are on their way, and says of the
// others why they differ.
func (r *TopicReport) differ(keys []string, compare func(key string) (why string)) map[string]string {
	wrong := map[string]string{}
	for _, key := range keys {
		switch why := compare(key); why {
		case frontEqual:
		case frontWaiting:
			r.Front.Waiting++
		default:
			wrong[key] = why
		}
	}
	return wrong
}

// meantDocuments lists those of some documents that an erasure means, by their rows.
func (v *Verifier) meantDocuments(ctx context.Context, t *schemas.Topic, e *ledger.Erasure, ids []string) (out []string, err error) {
	cond, params := e.Match("e")
	for lane, some := range byLane(ids, t.DocumentLane) {
		meant, err := v.db.MeantDocuments(ctx, e.Topic, lane, tables.AmongDocuments(tables.Condition{SQL: cond, Params: params}, some), "", len(some))
		if err != nil && !errors.Is(err, tables.ErrNoTable) {
			return nil, err
		}
		for _, d := range meant {
			out = append(out, d.ID)
		}
	}
	return out, nil
}

// byLane sorts keys by the lane of each.
func byLane(keys []string, lane func(key string) int) map[int][]string {
	out := map[int][]string{}
	for _, key := range keys {
		out[lane(key)] = append(out[lane(key)], key)
	}
	return out
}

func (f *FrontReport) count(r *document.Record) {
	switch {
	case r == nil || r.Removed():
	case r.Stub != nil:
		f.Cold++
	default:
		f.Hot++
	}
}

// What compareFront says beside what is wrong.
const (
	frontEqual   = ""
	frontWaiting = "waiting"
)

// compareFront compares a document's last record in the front with its newest stored
// version; nil: there is none. upTo is how far each lane is stored.
func compareFront(r records.LastDocument, n *tables.Newest, upTo map[int]uint64) string {
	switch {
	case r.Record == nil && r.Replaced > 0:
		return fmt.Sprintf("message %d of %s is not a record, and took the place of what was there; run `almanac repair`, which puts back what ClickHouse has", r.Replaced, schemas.StreamDocs)
	case r.Record == nil && (n == nil || n.Op == schemas.OpRemoved):
		return frontEqual
	case r.Record == nil:
		return fmt.Sprintf("%s does not have it, ClickHouse has version %d; run `almanac repair`", schemas.StreamDocs, n.Version)
	}
	seq := r.RowSeq()
	newer := n != nil && n.Seq > seq
	lane, err := schemas.ParseLane(r.Lane)
	switch {
	case newer:
		return fmt.Sprintf("%s is at version %d, ClickHouse has version %d; run `almanac repair`", schemas.StreamDocs, r.Version, n.Version)
	case n != nil && n.Seq == seq:
		if n.Created != r.Created || n.Version != r.Version || n.Changed != r.Changed || n.Op != r.Op || r.Stub == nil && n.Size != r.Size || r.Stub != nil && (n.Month != r.Stub.Month || n.Shard != r.Stub.Shard) {
			return fmt.Sprintf("version %d is another one in ClickHouse than in %s", r.Version, schemas.StreamDocs)
		}
		return frontEqual
	case r.Stub != nil:
		return fmt.Sprintf("its stub names version %d in shard %s, and ClickHouse does not have it", r.Version, schemas.ShardRef{Topic: r.Topic, Month: r.Stub.Month, ID: r.Stub.Shard})
	case err == nil && seq <= upTo[lane]:
		return fmt.Sprintf("version %d, message %d of %s, is not in ClickHouse, though its lane is stored up to %d: it is among the dead letters, or lost", r.Version, seq, schemas.StreamDocs, upTo[lane])
	}
	return frontWaiting
}
