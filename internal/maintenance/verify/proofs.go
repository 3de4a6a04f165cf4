package verify

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// A run keeps what it proved of each shard in the registry, and the next one takes it from
// there while all that it rests on is the same: the shard's parts in ClickHouse, its entry,
// its erasures, its last frame. Headers of frames are read from where the last run ended.
// That they are still there is told by the server's own count of each shard's messages,
// and that the stream was not cut by the identity of the last one that was read.
//
// Not read again are the bytes of frames and of parts that lie where they lay: what went
// bad on a disk since is found by Full, by the reader that meets it, and by a restart.

// proofs is what runs proved of a topic, and what this one adds.
type proofs struct {
	topic string
	upTo  registry.ReadUpTo
	of    map[schemas.ShardRef]registry.Proof
	next  map[schemas.ShardRef]registry.Proof
	// valid: SHARDS still has the last frame that was read.
	valid bool
	// parts are digests from before the rows were counted, again those from after.
	parts, again map[schemas.ShardRef]string
}

// Taken is what a report takes from earlier proofs.
type Taken struct {
	Shards int    `json:"shards"`
	Rows   uint64 `json:"rows"`
	Frames uint64 `json:"frames"`
	// Since is when the oldest of the proofs was made.
	Since time.Time `json:"since,omitzero"`
}

func (t *Taken) add(o Taken) {
	t.Shards, t.Rows, t.Frames = t.Shards+o.Shards, t.Rows+o.Rows, t.Frames+o.Frames
	t.since(o.Since)
}

// since moves Since back to an earlier proof.
func (t *Taken) since(at time.Time) {
	if !at.IsZero() && (t.Since.IsZero() || at.Before(t.Since)) {
		t.Since = at
	}
}

// loadProofs reads them, and counts the rows of the shards whose parts changed since.
func (v *Verifier) loadProofs(ctx context.Context, topic string) (*proofs, map[schemas.Shard]tables.Count, error) {
	p := &proofs{topic: topic, of: map[schemas.ShardRef]registry.Proof{}, next: map[schemas.ShardRef]registry.Proof{}}
	var err error
	if !v.full {
		if p.upTo, p.of, err = v.reg.Proofs(ctx, topic); err != nil {
			return nil, nil, err
		}
		if p.valid, err = v.stillHas(ctx, p.upTo); err != nil {
			return nil, nil, err
		}
	}
	if p.parts, err = v.db.Parts(ctx, topic); err != nil {
		return nil, nil, err
	}
	stored := map[schemas.Shard]tables.Count{}
	var changed []schemas.ShardRef
	for ref, parts := range p.parts {
		if r := p.of[ref].Rows; r != nil && r.Parts == parts {
			stored[ref.ID] = tables.Count{Month: ref.Month, Rows: r.Stored, Distinct: r.Distinct, IDs: r.IDs, Head: r.Head, MinTs: r.MinTs, MaxTs: r.MaxTs}
		} else {
			changed = append(changed, ref)
		}
	}
	var counted map[schemas.Shard]tables.Count
	if len(stored) == 0 {
		counted, err = v.db.Counts(ctx, topic)
	} else {
		counted, err = v.db.CountsOf(ctx, topic, changed)
	}
	if err != nil {
		return nil, nil, err
	}
	for id, c := range counted {
		stored[id] = c
	}
	p.again, err = v.db.Parts(ctx, topic)
	return p, stored, err
}

// stillHas reports whether SHARDS has the last frame that was read, and so all before it
// that was not purged since.
func (v *Verifier) stillHas(ctx context.Context, upTo registry.ReadUpTo) (bool, error) {
	msg, err := streams.DecideAt(ctx, v.js, schemas.StreamShards, upTo.Seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("verify: message %d of %s: %w", upTo.Seq, schemas.StreamShards, err)
	}
	return msg.Time.UnixNano() == upTo.Stored, nil
}

// taken is the report of a shard that was proven and did not change since.
func (p *proofs) taken(e *registry.Shard, t streams.Tail, gone *goneRows, h *held) (*ShardReport, bool) {
	r := p.of[e.Ref()].Rows
	record := gone.after[e.ID]
	if r == nil || !p.valid || h == nil || h.fresh || r.Parts != p.parts[e.Ref()] ||
		r.Entry != e.Rev() || r.ErasureRecord != record.Rev || r.TailSeq != t.Seq || !gone.stored(e.ID) {
		return nil, false
	}
	return &ShardReport{
		Name: e.Name(), Routed: r.Routed, Expected: r.Expected, Erased: r.Erased, Stored: r.Stored, Distinct: r.Distinct,
		Head: e.Head(r.Head), Tail: r.Tail, ByCount: r.ByCount, provenAt: r.At,
	}, true
}

// prove notes what is proven of a shard by a report without problems.
func (p *proofs) prove(e *registry.Shard, s *ShardReport, st tables.Count, t streams.Tail, gone *goneRows) {
	next := p.next[e.Ref()]
	parts := p.parts[e.Ref()]
	before, after := gone.before[e.ID], gone.after[e.ID]
	if len(s.Problems) > 0 || s.missing()+s.doubled() > 0 || s.changed || e.Gone() || parts == "" || parts != p.again[e.Ref()] ||
		t.Seq == 0 || before.Rev != after.Rev || !gone.stored(e.ID) {
		return
	}
	at := s.provenAt
	if at.IsZero() {
		at = time.Now().UTC()
	}
	next.Rows = &registry.ProvenRows{
		At: at, Parts: parts, Entry: e.Rev(), ErasureRecord: after.Rev, TailSeq: t.Seq,
		Stored: st.Rows, Distinct: st.Distinct, IDs: st.IDs, Head: st.Head, MinTs: st.MinTs, MaxTs: st.MaxTs,
		Routed: s.Routed, Expected: s.Expected, Erased: s.Erased, Tail: s.Tail, ByCount: s.ByCount,
	}
	p.next[e.Ref()] = next
}

// keepProofs keeps what changed, and forgets shards that nothing has any more.
func (v *Verifier) keepProofs(ctx context.Context, p *proofs, upTo registry.ReadUpTo) error {
	changed := map[schemas.ShardRef]registry.Proof{}
	for ref, next := range p.next {
		if was, ok := p.of[ref]; !ok || !reflect.DeepEqual(was, next) {
			changed[ref] = next
		}
	}
	var left []schemas.ShardRef
	for ref := range p.of {
		if _, ok := p.next[ref]; !ok {
			left = append(left, ref)
		}
	}
	if len(changed) > 0 || upTo != p.upTo {
		if err := v.reg.SaveProofs(ctx, p.topic, changed, upTo); err != nil {
			return err
		}
	}
	return v.reg.DropProofs(ctx, left)
}

// proven is what is kept of a shard's frames.
func (h *held) proven() registry.ProvenFrames {
	return registry.ProvenFrames{First: h.first, Last: h.last, Frames: h.frames, MinTs: h.minTs, MaxTs: h.maxTs, Gaps: slices.Clip(h.gaps), Before: h.before, LastSeq: h.lastSeq, Sums: h.sums}
}

func heldOf(f *registry.ProvenFrames) *held {
	return &held{first: f.First, last: f.Last, frames: f.Frames, minTs: f.MinTs, maxTs: f.MaxTs, gaps: slices.Clip(f.Gaps), before: f.Before, lastSeq: f.LastSeq, sums: f.Sums}
}
