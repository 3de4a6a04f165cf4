package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// held is what SHARDS holds of one shard, as read frame by frame.
type held struct {
	first, last  uint64 // positions
	frames       uint64
	minTs, maxTs int64
	gaps         []ledger.Span // between first and last
	before       uint64        // rows of the frames before the first
	lastSeq      uint64        // in SHARDS
	fresh        bool          // read whole by this run: what was proven of it is void
	sums         uint64        // of all ShardIDs of its positions
}

// add takes a frame by its headers.
func (h *held) add(p *schemas.Placed, seq uint64) {
	if h.frames == 0 {
		h.first, h.last, h.minTs, h.maxTs, h.before = p.Pos, p.Pos-1, p.MinTs, p.MaxTs, p.ShardRows-uint64(p.Rows)
	}
	if p.Pos > h.last+1 {
		h.gaps = append(h.gaps, ledger.Span{From: h.last + 1, To: p.Pos - 1})
	}
	if p.Pos > h.last {
		h.sums += p.ShardIDs
	}
	h.frames, h.last, h.lastSeq = h.frames+1, max(h.last, p.Pos), seq
	h.minTs, h.maxTs = min(h.minTs, p.MinTs), max(h.maxTs, p.MaxTs)
}

// reading is the headers of a topic's frames.
type reading struct {
	held   map[schemas.Shard]*held
	unread uint64 // counted and not given, or purged meanwhile
	upTo   registry.ReadUpTo
	taken  uint64 // frames whose headers an earlier run read
}

// heldFrames reads the headers of every frame of a topic in SHARDS, from where an earlier
// run ended. To count them would not do: a NATS server counts a frame whose bytes were
// damaged, and finds out when it reads it. But what was read once is told by the count: a
// shard of which fewer or more messages are there is read again.
func (v *Verifier) heldFrames(ctx context.Context, p *proofs) (*reading, error) {
	r := &reading{held: map[schemas.Shard]*held{}}
	from := uint64(1)
	if p.valid {
		r.upTo, from = p.upTo, p.upTo.Seq+1
		for ref, proof := range p.of {
			if proof.Frames.Frames > 0 {
				r.held[ref.ID] = heldOf(&proof.Frames)
				r.taken += proof.Frames.Frames
			}
		}
	}
	refs := map[schemas.Shard]schemas.ShardRef{}
	take := func(ref schemas.ShardRef, pl schemas.Placed, seq uint64, at time.Time) error {
		h := r.held[ref.ID]
		if h == nil {
			h = &held{fresh: true}
			r.held[ref.ID] = h
		}
		refs[ref.ID] = ref
		if seq > h.lastSeq {
			h.add(&pl, seq)
		}
		if seq > r.upTo.Seq {
			r.upTo = registry.ReadUpTo{Seq: seq, Stored: at.UnixNano()}
		}
		return nil
	}
	var err error
	if r.unread, err = streams.FramesFrom(ctx, v.js, schemas.ShardsFilter(p.topic), from, take); err != nil {
		return nil, err
	}
	if from > 1 {
		if err := v.recount(ctx, p, r, take); err != nil {
			return nil, err
		}
	}
	for ref := range p.of {
		refs[ref.ID] = ref
	}
	for id, h := range r.held {
		p.next[refs[id]] = registry.Proof{Frames: h.proven()}
	}
	return r, nil
}

// recount holds the server's count of each shard's messages against the frames that are
// known, and reads the shards again where they differ.
func (v *Verifier) recount(ctx context.Context, p *proofs, r *reading, take func(schemas.ShardRef, schemas.Placed, uint64, time.Time) error) error {
	counts, err := v.frameCounts(ctx, p.topic)
	if err != nil {
		return err
	}
	seen := map[schemas.Shard]bool{}
	for subject, n := range counts {
		ref, err := schemas.ParseShardSubject(subject)
		if err != nil {
			continue // no shard's: named by its end
		}
		seen[ref.ID] = true
		h := r.held[ref.ID]
		if h != nil && n > h.frames {
			came, err := v.cameSince(ctx, subject, h.last)
			if err != nil {
				return err
			}
			n -= min(n, came)
		}
		if h != nil && n == h.frames {
			continue
		}
		if h != nil {
			r.taken -= min(r.taken, p.of[ref].Frames.Frames)
		}
		delete(r.held, ref.ID)
		unread, err := streams.FramesFrom(ctx, v.js, subject, 1, take)
		if err != nil {
			return err
		}
		r.unread += unread
	}
	for id := range r.held {
		if !seen[id] {
			delete(r.held, id)
		}
	}
	return nil
}

// cameSince is how many frames a shard has above a position by now.
func (v *Verifier) cameSince(ctx context.Context, subject string, pos uint64) (uint64, error) {
	msg, err := streams.DecideLast(ctx, v.js, schemas.StreamShards, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("verify: end of %s: %w", subject, err)
	}
	last, err := schemas.ParsePlaced(msg.Header)
	if err != nil || last.Pos <= pos {
		return 0, nil
	}
	return last.Pos - pos, nil
}
