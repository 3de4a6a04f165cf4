package repair

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// batchOf is how many of the frames one insert takes: at least one, of one schema
// version, and such as the same erasures may concern.
func batchOf(frames []link, erasures ledger.Erasures) int {
	rows, raw := uint64(0), uint64(0)
	for i := range frames {
		rows, raw = rows+frames[i].rows, raw+frames[i].raw
		if i > 0 && (i == tables.MaxFrames || frames[i].schema != frames[0].schema || rows > tables.BatchRows || raw > tables.MaxRawBytes || !erasures.Alike(frames[i].from(), frames[0].from())) {
			return i
		}
	}
	return len(frames)
}

// coverOf is the erasures that may concern frames which are alike to the ledger, by
// all their times.
func coverOf(frames []link, erasures ledger.Erasures) ledger.Cover {
	lo, hi := frames[0].minTs, frames[0].maxTs
	for i := range frames {
		lo, hi = min(lo, frames[i].minTs), max(hi, frames[i].maxTs)
	}
	return erasures.Covering(frames[0].from(), lo, hi)
}

// bring reads frames as an insert takes them.
func (r *Repairer) bring(ctx context.Context, a *Action, frames []link) ([]tables.Frame, error) {
	payloads, err := r.payloads(ctx, a, frames)
	if err != nil {
		return nil, err
	}
	out := make([]tables.Frame, len(frames))
	for i := range frames {
		out[i] = tables.Frame{Pos: frames[i].pos, Rows: int(frames[i].rows), Payload: payloads[i]}
	}
	return out, nil
}

// payloads reads frames from where they are.
func (r *Repairer) payloads(ctx context.Context, a *Action, frames []link) ([][]byte, error) {
	out := make([][]byte, 0, len(frames))
	for len(out) < len(frames) {
		l := &frames[len(out)]
		if l.seq == 0 {
			payload, err := r.fromEvents(ctx, a, l)
			if err != nil {
				return nil, err
			}
			out = append(out, payload)
			continue
		}
		before := len(out)
		want := func() int { return len(frames) - len(out) }
		err := streams.Gather(ctx, r.js, schemas.StreamShards, a.ref.Subject(), l.seq, want, func(msg *streams.Message) (bool, error) {
			if msg.Sequence != frames[len(out)].seq {
				return false, nil // another source's turn, or a position that stands twice
			}
			out = append(out, msg.Data)
			return len(out) < len(frames) && frames[len(out)].seq > 0, nil
		})
		if err != nil {
			return nil, err
		}
		if len(out) == before {
			return nil, fmt.Errorf("repair: position %d of %s is no longer in %s", l.pos, a.ref, schemas.StreamShards)
		}
	}
	return out, nil
}

func (r *Repairer) fromEvents(ctx context.Context, a *Action, l *link) ([]byte, error) {
	msg, err := streams.DecideAt(ctx, r.js, schemas.StreamEvents, l.source)
	if err != nil {
		return nil, fmt.Errorf("repair: message %d of %s, position %d of %s: %w", l.source, schemas.StreamEvents, l.pos, a.ref, err)
	}
	if l.stored != 0 && l.stored != msg.Time.UnixNano() {
		return nil, fmt.Errorf("repair: message %d of %s is another one by now than position %d of %s came from", l.source, schemas.StreamEvents, l.pos, a.ref)
	}
	_, payloads, _ := r.check(a.topic, msg)
	if l.nth >= len(payloads) {
		return nil, fmt.Errorf("repair: message %d of %s no longer gives position %d of %s", l.source, schemas.StreamEvents, l.pos, a.ref)
	}
	return payloads[l.nth], nil
}
