package repair

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/frame"
)

// waitStored looks at the messages of EVENTS above a lane's new checkpoint, and has the
// lane route those that ClickHouse lacks and no others. As long as one that is stored
// follows another the checkpoint moves. Those above the first that is not stored are
// entered as settled: it may be of another month, whose sink was behind. routed is how
// far the lane had been before the damage. It returns what of that is routed again.
//
// The windows take the frames that the checkpoint passes. Those of settled messages the
// router takes when it passes them: were they taken here, what is routed again before them
// could be too far behind its producer's highest to be told from a repetition.
func (r *Repairer) waitStored(ctx context.Context, t *found, n int, l *lostLane, routed *checkpoint.Checkpoint) (again map[schemas.Month]amount, err error) {
	again = map[schemas.Month]amount{}
	l.cp.Pass()
	left := len(l.behind) > 0 || l.known != nil
	if !left && !t.hasDropped(n) {
		return again, nil
	}
	lost := map[schemas.Month]bool{}
	for _, f := range l.lost {
		lost[f.Month] = true
	}
	in := t.endedEarly(l.behind)
	settled := l.cp.StoredRun
	l.cp.StoredRun = nil
	follows, joins := true, false
	err = streams.Gather(ctx, r.js, schemas.StreamEvents, schemas.LaneFilter(t.topic.Name, l.token), l.cp.Source+1, nil, func(msg *streams.Message) (bool, error) {
		src := schemas.Source{Seq: msg.Sequence, Stored: msg.Time.UnixNano()}
		old := l.known != nil && src.UpTo(routed.SourceOf())
		month, _, err := schemas.ParseEventsSubject(msg.Subject, &t.topic)
		if err != nil { // a dead letter
			follows, joins = false, false
			return true, nil
		}
		if schemas.IsBlank(msg.Header, msg.Data) {
			return true, nil
		}
		frames, payloads, dead := r.check(&t.topic, msg)
		if !lost[month] && old && dead == 0 && !slices.ContainsFunc(frames, func(f schemas.Frame) bool { return checkpoint.Windows(l.cp.Windows).Check(f) != checkpoint.Repeated }) {
			return true, nil // it was routed, and the router knows it
		}
		stored := 0
		for _, s := range settled { // by an earlier repair
			if src.Seq >= s.From && src.Seq <= s.To && src.Stored <= s.Stored {
				stored = len(frames)
			}
		}
		for stored < len(frames) {
			has, err := r.hasFrame(ctx, t, n, month, in, old, frames[stored], payloads[stored])
			if err == nil && !has {
				// In a shard that goes on with its positions, what was erased has those that its erasure record names.
				if has = t.takenByRetention(n, month, src); !has && left {
					has, err = r.erasedWhole(ctx, t, src, frames[stored], payloads[stored])
				}
			}
			if err != nil {
				return false, err
			}
			if !has {
				break
			}
			stored++
		}
		whole := stored == len(frames) && stored > 0 && dead == 0
		for i, f := range frames {
			verdict := checkpoint.Windows(l.cp.Windows).Check(f)
			switch {
			case i < stored && verdict == checkpoint.Fresh:
				if follows && whole {
					l.cp.Windows = checkpoint.Windows(l.cp.Windows).Take(f, msg.Sequence)
				}
			case i >= stored && old && verdict == checkpoint.Repeated && lost[month] && !l.held[number{f.Producer, f.Seq}]:
				l.cp.Windows = checkpoint.Windows(l.cp.Windows).Forget(f)
				fallthrough
			case i >= stored && old && verdict == checkpoint.Fresh:
				a := again[month]
				again[month] = amount{a.frames + 1, a.rows + uint64(f.Rows)}
			}
		}
		switch {
		case follows && whole:
			l.cp.Source, l.cp.Digest, l.cp.Stored, l.cp.At = msg.Sequence, checkpoint.SourceDigest(msg.Data), src.Stored, 0
		case stored == 0:
			follows, joins = false, false
		default:
			partly := stored
			if stored == len(frames) {
				partly = 0
			}
			if !l.cp.NoteStored(src, partly, joins) {
				return false, fmt.Errorf("repair: %s: ClickHouse has more than %d runs of messages after message %d of %s, which it has not: nothing is changed",
					schemas.RoutedSubject(t.topic.Name, l.token), checkpoint.MaxStoredRuns, l.cp.Source, schemas.StreamEvents)
			}
			follows, joins = false, partly == 0
		}
		return true, nil
	})
	return again, err
}

// endedEarly are shards by month.
func (t *found) endedEarly(refs []schemas.ShardRef) map[schemas.Month][]schemas.ShardRef {
	out := map[schemas.Month][]schemas.ShardRef{}
	for _, ref := range refs {
		out[ref.Month] = append(out[ref.Month], ref)
	}
	return out
}

// hasFrame reports whether ClickHouse has a frame: above the frames of the shards whose
// ends are gone, and for one that may have been routed long before, anywhere in the lane.
func (r *Repairer) hasFrame(ctx context.Context, t *found, n int, month schemas.Month, behind map[schemas.Month][]schemas.ShardRef, old bool, f schemas.Frame, payload []byte) (bool, error) {
	var reader frame.Reader
	if err := reader.Open(payload, &t.topic, f.Schema); err != nil {
		return false, err
	}
	for _, ref := range behind[month] {
		if has, err := r.db.Holds(ctx, ref, &f, &reader, t.tail(ref.ID)+1, math.MaxUint64); err != nil || has {
			return has, err
		}
	}
	if !old {
		return false, nil
	}
	for id, ref := range t.where {
		if ref.Month != month || t.lane[id] != n || t.counts[id].Rows == 0 {
			continue
		}
		if has, err := r.db.Holds(ctx, ref, &f, &reader, 1, math.MaxUint64); err != nil || has {
			return has, err
		}
	}
	return false, nil
}

// hasDropped reports whether retention dropped a shard of a lane.
func (t *found) hasDropped(lane int) bool {
	for id := range t.entries {
		if e := t.entries[id]; t.lane[id] == lane && e.Gone() {
			return true
		}
	}
	return false
}

// takenByRetention reports whether a message was routed to a shard that retention dropped: it was routed before, by
// the registry's copy of its lane's checkpoint, and no other shard of its month is left.
func (t *found) takenByRetention(lane int, month schemas.Month, src schemas.Source) bool {
	copied := t.copies[strconv.Itoa(lane)]
	if copied.Source == 0 || !src.UpTo(copied.SourceOf()) {
		return false
	}
	dropped := false
	for id, ref := range t.where {
		if ref.Month != month || t.lane[id] != lane {
			continue
		}
		e, known := t.entries[id]
		if !known || !e.Gone() {
			return false
		}
		dropped = true
	}
	return dropped
}

// erasedWhole reports whether erasures took all of a frame: it had been stored. Routed again it would be
// struck whole, and no erasure record of its new shard would say so.
func (r *Repairer) erasedWhole(ctx context.Context, t *found, src schemas.Source, f schemas.Frame, payload []byte) (bool, error) {
	cover := t.ledger.Covering(src, f.MinTs, f.MaxTs)
	if len(cover) == 0 || cover.Schema() > t.topic.Version {
		return false, nil
	}
	keep, params := cover.Keep()
	left, err := r.db.CountFrame(ctx, &t.topic, schemas.Placed{Frame: f}, payload, tables.Condition{SQL: keep, Params: params})
	return err == nil && left == 0, err
}

// number is a producer's frame.
type number struct {
	producer string
	seq      uint64
}
