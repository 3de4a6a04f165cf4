package registry

import (
	"context"
	"errors"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// The registry remembers the ends of both streams. It lies in files of its own, so it
// tells what was lost where a stream lost its end and nothing else saw what was there:
// messages of EVENTS above every checkpoint, and frames of SHARDS that went with the
// checkpoint that names them. What is noted is at most a second old; see
// retention.Config.EndsEvery and router.Config.CopyEvery.

// End is a stream's end as last noted, with the entry's revision; the zero end and
// revision 0 when none was.
func (r *Registry) End(ctx context.Context, stream string) (checkpoint.StreamEnd, uint64, error) {
	end := checkpoint.StreamEnd{Stream: stream}
	rev, err := r.get(ctx, schemas.EndKey(stream), &end)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	if errors.Is(err, ErrUnreadable) { // as if it was never noted
		return checkpoint.StreamEnd{Stream: stream}, rev, err
	}
	return end, rev, err
}

// SaveEnd writes a stream's end over the revision that was read: ErrConflict if another
// process was faster.
func (r *Registry) SaveEnd(ctx context.Context, end checkpoint.StreamEnd, rev uint64) error {
	return r.commit(ctx, &change{key: schemas.EndKey(end.Stream), rev: rev, v: &end})
}

// EndCut compares EVENTS with its end as last noted; see streams.EndCut.
func (r *Registry) EndCut(ctx context.Context, end checkpoint.StreamEnd) (cut checkpoint.Cut, why string, err error) {
	return streams.EndCut(ctx, r.js, end, r.Taken, func() (uint64, error) { return r.routedDespite(ctx, end.Seq) })
}

// routedDespite is the highest message of EVENTS, up to a sequence, up to which a lane was
// routed before SHARDS lost its end as well: by the copies of checkpoints until a repair,
// and then by the cuts that it entered.
func (r *Registry) routedDespite(ctx context.Context, upTo uint64) (routed uint64, err error) {
	topics, err := r.Skipping(func(error) {}).Topics(ctx)
	if err != nil {
		return 0, err
	}
	for i := range topics {
		name := topics[i].Name
		now, err := streams.Checkpoints(ctx, r.js, name)
		if err != nil {
			return 0, err
		}
		copies, err := r.Copies(ctx, name)
		if err != nil {
			return 0, err
		}
		for lane, known := range copies { // those of a front say sequences of another stream
			if cp := now[lane]; known.Front == "" && cp.Forgets(&known) {
				routed = max(routed, min(known.Source, upTo))
			}
		}
		for _, cp := range now {
			for _, c := range cp.Cuts {
				if c.Both && cp.Front == "" {
					// The lane was routed up to To (checkpoint.Cut). Nothing above upTo, the end as noted, is asked.
					routed = max(routed, min(c.To, upTo))
				}
			}
		}
	}
	return routed, nil
}
