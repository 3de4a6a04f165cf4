package rebuild

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// maxEnds is how many positions of the old table are looked at at once.
const maxEnds = 4096

// pass brings over what the old table has above the fresh heads, and says how many
// rows those were.
func (r *rebuild) pass(ctx context.Context) (moved uint64, err error) {
	counts, err := r.counts(ctx)
	if err != nil {
		return 0, err
	}
	heads, err := r.cfg.DB.Heads(ctx, r.fresh)
	if err != nil {
		return 0, err
	}
	entries, err := r.anonymised(ctx)
	if err != nil {
		return 0, err
	}
	before := r.res.Inserted + r.res.Copied
	r.total = 0
	for _, c := range counts {
		r.total += c.Rows
	}
	for id, c := range counts {
		if heads[id] >= c.Head {
			continue
		}
		if err := r.fill(ctx, schemas.ShardRef{Topic: r.topic.Name, Month: c.Month, ID: id}, heads[id]); err != nil {
			return 0, err
		}
		if _, ok := r.copied[id]; !ok {
			r.copied[id] = entries[id].AnonymisedAt
		}
	}
	return r.res.Inserted + r.res.Copied - before, nil
}

// counts are the old table's, but for what retention dropped and a sink that slept
// over it stored again.
func (r *rebuild) counts(ctx context.Context) (map[schemas.Shard]tables.Count, error) {
	counts, err := r.cfg.DB.Counts(ctx, r.topic.Name)
	maps.DeleteFunc(counts, func(id schemas.Shard, _ tables.Count) bool { return r.gone[id] })
	return counts, err
}

// anonymised are the registry's entries, for when each shard was last anonymised.
func (r *rebuild) anonymised(ctx context.Context) (map[schemas.Shard]registry.Shard, error) {
	entries, err := r.cfg.Registry.Shards(ctx, r.topic.Name, 0)
	out := map[schemas.Shard]registry.Shard{}
	for _, e := range entries {
		out[e.ID] = e
	}
	return out, err
}

// fill is the work on one shard: its fresh head, and where SHARDS goes on after it.
type fill struct {
	ref  schemas.ShardRef
	head uint64
	// next is the sequence in SHARDS from which the first frame above the head can
	// be read, 0 when it was not looked for yet; first is that frame's position, 0
	// when it is not known. Below first the rows are copied.
	next, first uint64
}

// none is a next of which nothing is held.
const none = math.MaxUint64

// fill brings a shard's rows over, batch by batch, each ending at a position that the old
// table has rows of.
func (r *rebuild) fill(ctx context.Context, ref schemas.ShardRef, head uint64) error {
	f := &fill{ref: ref, head: head}
	for {
		ends, err := r.cfg.DB.RowsByPosition(ctx, ref, f.head, maxEnds)
		if err != nil {
			return err
		}
		if len(ends) == 0 {
			if f.head > head {
				return r.follow(ctx, ref)
			}
			return nil
		}
		for len(ends) > 0 {
			if err := r.batch(ctx, f, ends); err != nil {
				return err
			}
			if err := r.crash("rebuild.after-batch"); err != nil {
				return err
			}
			for len(ends) > 0 && ends[0].Pos <= f.head {
				ends = ends[1:]
			}
		}
	}
}

// batch stores rows of the first positions of ends behind the fresh head, and moves
// it: from frames if SHARDS has all of them and nothing was erased, else copied.
func (r *rebuild) batch(ctx context.Context, f *fill, ends []tables.PosCount) error {
	if r.mayInsert(f.ref.ID) {
		in, rows, err := r.frames(ctx, f, ends)
		if err != nil {
			return err
		}
		if in != nil {
			err := r.store(ctx, f, in.Last(), func(attempt int) error {
				in.Attempt = attempt
				return r.cfg.DB.Insert(ctx, in)
			})
			r.moved(&r.res.Inserted, rows, err)
			return err
		}
	}
	upTo, rows := ends[0].Pos, ends[0].Rows
	for _, e := range ends[1:] {
		if rows+e.Rows > tables.BatchRows || f.first > 0 && upTo+1 >= f.first {
			break
		}
		upTo, rows = e.Pos, rows+e.Rows
	}
	err := r.store(ctx, f, upTo, func(attempt int) error {
		return r.cfg.DB.CopyRows(ctx, &tables.Copy{Topic: &r.topic, From: r.topic.Name, To: r.fresh, Month: f.ref.Month, Shard: f.ref.ID, After: f.head, UpTo: upTo, Attempt: attempt})
	})
	r.moved(&r.res.Copied, rows, err)
	return err
}

func (r *rebuild) moved(to *uint64, rows uint64, err error) {
	if err != nil {
		return
	}
	*to += rows
	if r.done += rows; r.cfg.Progress != nil {
		r.cfg.Progress(r.done, r.total)
	}
}

// store inserts until the fresh head is at upTo.
func (r *rebuild) store(ctx context.Context, f *fill, upTo uint64, insert func(attempt int) error) error {
	head, err := tables.Follow(f.head, insert, func() (uint64, error) {
		now, err := r.cfg.DB.Head(ctx, schemas.ShardRef{Topic: r.fresh, Month: f.ref.Month, ID: f.ref.ID})
		if err == nil && now != upTo && now != f.head {
			err = fmt.Errorf("rebuild: %w: %s is at position %d, neither %d nor %d; does another rebuild run?", ErrDiffers, schemas.PublicShardName(r.fresh, f.ref.Month, f.ref.ID), now, f.head, upTo)
		}
		return now, err
	})
	if errors.Is(err, tables.ErrConsumed) {
		err = fmt.Errorf("rebuild: %s: %w", schemas.PublicShardName(r.fresh, f.ref.Month, f.ref.ID), err)
	}
	if err == nil {
		f.head = head
	}
	return err
}

// frames gathers the frames of as many positions of ends as fit one batch. nil: SHARDS
// does not have them all, or they fit none.
func (r *rebuild) frames(ctx context.Context, f *fill, ends []tables.PosCount) (*tables.Insert, uint64, error) {
	if f.next == 0 {
		if err := r.locate(ctx, f); err != nil {
			return nil, 0, err
		}
	}
	if f.next == none || f.first > f.head+1 {
		return nil, 0, nil
	}
	in := &tables.Insert{Topic: &r.target, Month: f.ref.Month, Shard: f.ref.ID, Head: f.head}
	var rows, kept, last uint64 // rows of all frames so far, and of those up to the position last
	size, raw, frames := 0, 0, 0
	behind := f.next // the sequence behind the frame of last
	err := streams.Gather(ctx, r.js, schemas.StreamShards, f.ref.Subject(), f.next, nil, func(msg *streams.Message) (bool, error) {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil || p.Pos <= f.head {
			return true, nil // no frame, or copied
		}
		if want := f.head + 1 + uint64(len(in.Frames)); p.Pos != want {
			if len(in.Frames) == 0 {
				f.next, f.first = msg.Sequence, p.Pos
			}
			return false, nil
		}
		if p.Cleared != "" {
			return false, nil
		}
		if len(in.Frames) == 0 {
			in.Schema = p.Schema
		}
		if p.Schema > r.topic.Version {
			return false, fmt.Errorf("rebuild: %w: %s has a frame of schema version %d, the topic had %d when this began; run it again", ErrChanged, f.ref, p.Schema, r.topic.Version)
		}
		rows, size, raw = rows+uint64(p.Rows), size+len(msg.Data), raw+p.RawBytes
		if p.Schema != in.Schema || rows > tables.BatchRows && last > 0 || len(in.Frames) == tables.MaxFrames || size > tables.BatchBytes || raw > tables.MaxRawBytes {
			return false, nil
		}
		in.Frames = append(in.Frames, tables.Frame{Pos: p.Pos, Rows: p.Rows, Payload: msg.Data})
		for len(ends) > 0 && ends[0].Pos < p.Pos {
			ends = ends[1:]
		}
		if len(ends) > 0 && ends[0].Pos == p.Pos {
			last, kept, frames, behind = p.Pos, rows, len(in.Frames), msg.Sequence+1
		}
		return len(ends) > 0 && p.Pos < ends[len(ends)-1].Pos, nil
	})
	if err != nil || last == 0 {
		return nil, 0, err
	}
	in.Frames = in.Frames[:frames]
	f.next, f.first = behind, 0
	return in, kept, nil
}

// locate finds where SHARDS goes on after the fresh head.
func (r *rebuild) locate(ctx context.Context, f *fill) error {
	subject := f.ref.Subject()
	last, err := streams.DecideLast(ctx, r.js, schemas.StreamShards, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		f.next = none
		return nil
	}
	if err != nil {
		return fmt.Errorf("rebuild: %s: %w", subject, err)
	}
	f.next, err = streams.FindFrame(ctx, r.js, subject, f.head+1, last.Sequence)
	return err
}
