package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// A batch is one insert, one block, one part, as a sink's (see sinks).
const (
	batchRows = 200_000
	// batchBytes and batchRawBytes bound the frames of one, encoded and decompressed.
	batchBytes    = 32 << 20
	batchRawBytes = 128 << 20
	// maxEnds is how many inserts of the old table are looked at at once.
	maxEnds = 4096
	// maxAttempts is how often a batch may be answered OK and not be there, each time
	// because a crash burnt its token.
	maxAttempts = 5
)

// part is a shard as the old table has it.
type part struct {
	month schemas.Month
	shard schemas.Shard
}

// pass brings over what the old table has above the fresh heads, and says how many
// rows those were.
func (r *rebuild) pass(ctx context.Context) (moved uint64, err error) {
	counts, err := r.cfg.DB.Counts(ctx, r.topic.Name)
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
		if err := r.fill(ctx, part{c.Month, id}, heads[id]); err != nil {
			return 0, err
		}
		if _, ok := r.copied[id]; !ok {
			r.copied[id] = entries[id].AnonymisedAt
		}
	}
	return r.res.Inserted + r.res.Copied - before, nil
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

// fill brings a shard's rows over, batch by batch, each ending where an insert of
// the old table ended.
func (r *rebuild) fill(ctx context.Context, p part, head uint64) error {
	for {
		ends, err := r.cfg.DB.InsertEnds(ctx, r.topic.Name, p.month, p.shard, head, maxEnds)
		if err != nil || len(ends) == 0 {
			return err
		}
		for len(ends) > 0 {
			next, err := r.batch(ctx, p, head, ends)
			if err != nil {
				return err
			}
			if err := r.crash("rebuild.after-batch"); err != nil {
				return err
			}
			for head = next; len(ends) > 0 && ends[0].Pos <= head; {
				ends = ends[1:]
			}
		}
	}
}

// batch stores rows of the first inserts of ends behind the fresh head: from frames
// if SHARDS has all of them and nothing was erased, else copied. It returns the new
// head.
func (r *rebuild) batch(ctx context.Context, p part, head uint64, ends []tables.InsertEnd) (uint64, error) {
	if !r.touched[p.shard] {
		in, rows, err := r.frames(ctx, p, head, ends)
		if err != nil {
			return 0, err
		}
		if in != nil {
			err := r.store(ctx, p, head, in.Last, func(attempt int) error {
				in.Attempt = attempt
				return r.cfg.DB.Insert(ctx, in)
			})
			r.moved(&r.res.Inserted, rows, err)
			return in.Last, err
		}
	}
	upTo, rows := ends[0].Pos, ends[0].Rows
	for _, e := range ends[1:] {
		if rows+e.Rows > batchRows {
			break
		}
		upTo, rows = e.Pos, rows+e.Rows
	}
	err := r.store(ctx, p, head, upTo, func(attempt int) error {
		return r.cfg.DB.CopyRows(ctx, &tables.Copy{Topic: &r.topic, From: r.topic.Name, To: r.fresh, Month: p.month, Shard: p.shard, After: head, UpTo: upTo, Attempt: attempt})
	})
	r.moved(&r.res.Copied, rows, err)
	return upTo, err
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

// store inserts until the fresh head says that it is done: an answer proves nothing.
func (r *rebuild) store(ctx context.Context, p part, head, upTo uint64, insert func(attempt int) error) error {
	for attempt := range maxAttempts {
		insertErr := insert(attempt)
		now, err := r.cfg.DB.Head(ctx, r.fresh, p.month, p.shard)
		if err != nil {
			return errors.Join(insertErr, err)
		}
		if now == upTo {
			return nil
		}
		if now != head {
			return fmt.Errorf("rebuild: %w: %s is at position %d, neither %d nor %d; does another rebuild run?", ErrDiffers, schemas.PublicShardName(r.fresh, p.month, p.shard), now, head, upTo)
		}
		if insertErr != nil {
			return insertErr
		}
	}
	return fmt.Errorf("rebuild: %w: %s behind position %d", ErrBurnt, schemas.PublicShardName(r.fresh, p.month, p.shard), head)
}

// frames gathers the frames of as many inserts of ends as fit one batch. nil: SHARDS
// does not have them all, or they fit none.
func (r *rebuild) frames(ctx context.Context, p part, head uint64, ends []tables.InsertEnd) (*tables.Insert, uint64, error) {
	subject := schemas.ShardSubject(r.topic.Name, p.month, p.shard)
	last, err := r.shards.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("rebuild: %s: %w", subject, err)
	}
	seq, err := registry.FindFrame(ctx, r.shards, subject, head+1, last.Sequence)
	if err != nil {
		return nil, 0, err
	}
	in := &tables.Insert{Topic: &r.target, Month: p.month, Shard: p.shard, Head: head}
	var rows, kept uint64 // of all frames so far, and of those up to in.Last
	size, raw, frames, whole := 0, 0, 0, true
	next := head + 1
	err = registry.Read(ctx, r.js, schemas.StreamShards, subject, seq, nil, func(msg *jetstream.RawStreamMsg) (bool, error) {
		f, err := schemas.ParsePlaced(msg.Header)
		if err != nil {
			return true, nil // no frame
		}
		if in.Schema == 0 {
			in.Schema = f.Schema
		}
		rows, size, raw = rows+uint64(f.Rows), size+len(msg.Data), raw+f.RawBytes
		if whole = f.Pos == next && f.Cleared == ""; !whole || f.Schema != in.Schema || rows > batchRows && in.Last > 0 || size > batchBytes || raw > batchRawBytes {
			return false, nil
		}
		in.Frames = append(in.Frames, msg.Data)
		next++
		for len(ends) > 0 && ends[0].Pos < f.Pos {
			ends = ends[1:]
		}
		if len(ends) > 0 && ends[0].Pos == f.Pos {
			in.Last, kept, frames = f.Pos, rows, len(in.Frames)
		}
		return len(ends) > 0 && f.Pos < ends[len(ends)-1].Pos, nil
	})
	if err != nil || in.Last == 0 {
		return nil, 0, err
	}
	in.Frames = in.Frames[:frames]
	return in, kept, nil
}
