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

// passStored has a lane's new checkpoint pass the messages of EVENTS above it that ClickHouse has, so
// that the lane routes the others and no others. As long as one that is stored follows another the
// checkpoint moves. Those above the first that is not stored become runs of the checkpoint (StoredRun):
// it may be of another month, whose sink was behind. routed is how far the lane had been before the
// damage. It returns what of that is routed again.
//
// The windows take the frames that the checkpoint passes. Those of the runs the router takes when it
// passes them: were they taken here, what is routed again before them could be too far behind its
// producer's highest to be told from a repetition.
func (r *Repairer) passStored(ctx context.Context, t *found, n int, l *lostLane, routed *checkpoint.Checkpoint) (again map[schemas.Month]amount, err error) {
	l.cp.Pass()
	p := &storedPass{
		r: r, t: t, lane: n, l: l, routed: routed, unproven: len(l.behind) > 0 || l.known != nil,
		behind: map[schemas.Month][]schemas.ShardRef{}, lost: map[schemas.Month]bool{},
		follows: true, again: map[schemas.Month]amount{},
	}
	if !p.unproven && !t.hasDropped(n) {
		return p.again, nil
	}
	for _, ref := range l.behind {
		p.behind[ref.Month] = append(p.behind[ref.Month], ref)
	}
	for _, f := range l.lost {
		p.lost[f.Month] = true
	}
	p.earlier, l.cp.StoredRun = l.cp.StoredRun, nil
	err = streams.Gather(ctx, r.js, schemas.StreamEvents, schemas.LaneFilter(t.topic.Name, l.token), l.cp.Source+1, nil, func(msg *streams.Message) (more bool, err error) {
		err = p.message(ctx, msg)
		return err == nil, err
	})
	return p.again, err
}

// storedPass is one run of passStored over a lane.
type storedPass struct {
	r      *Repairer
	t      *found
	lane   int
	l      *lostLane
	routed *checkpoint.Checkpoint
	// unproven: SHARDS lost ends of the lane's shards, or EVENTS is not what the lane saw. So what
	// is above the checkpoint may have been routed.
	unproven bool
	// behind are the shards whose ends are gone, by month; lost are the months with frames that are nowhere.
	behind map[schemas.Month][]schemas.ShardRef
	lost   map[schemas.Month]bool
	// earlier are the runs that an earlier repair found.
	earlier []checkpoint.StoredRun

	// follows: every message so far was stored. joins: the last one was, whole, above one that was not.
	follows, joins bool
	again          map[schemas.Month]amount
}

// offered is one message of EVENTS with what it holds.
type offered struct {
	msg      *streams.Message
	src      schemas.Source
	month    schemas.Month
	frames   []schemas.Frame
	payloads [][]byte
	dead     int  // events in it that are refused
	old      bool // the lane had been routed beyond it
}

// message looks at the next message.
func (p *storedPass) message(ctx context.Context, msg *streams.Message) error {
	o := offered{msg: msg, src: schemas.Source{Seq: msg.Sequence, Stored: msg.Time.UnixNano()}}
	o.old = p.l.known != nil && o.src.UpTo(p.routed.SourceOf())
	var err error
	if o.month, _, err = schemas.ParseEventsSubject(msg.Subject, &p.t.topic); err != nil { // a dead letter
		p.follows, p.joins = false, false
		return nil
	}
	if schemas.IsBlank(msg.Header, msg.Data) {
		return nil
	}
	o.frames, o.payloads, o.dead = p.r.check(&p.t.topic, msg)
	if !p.lost[o.month] && o.old && o.dead == 0 && !slices.ContainsFunc(o.frames, func(f schemas.Frame) bool { return p.window(f) != checkpoint.Repeated }) {
		return nil // it was routed, and the router knows it
	}
	stored, err := p.stored(ctx, &o)
	if err != nil {
		return err
	}
	whole := stored == len(o.frames) && stored > 0 && o.dead == 0
	p.take(&o, stored, whole)
	return p.pass(&o, stored, whole)
}

// window is what the checkpoint's windows say of a frame.
func (p *storedPass) window(f schemas.Frame) checkpoint.Repeat {
	return checkpoint.Windows(p.l.cp.Windows).Check(f)
}

// stored counts the frames of a message that are stored, up to the first that is not.
func (p *storedPass) stored(ctx context.Context, o *offered) (n int, err error) {
	for _, run := range p.earlier {
		if o.src.Seq >= run.From && o.src.Seq <= run.To && o.src.Stored <= run.Stored {
			return len(o.frames), nil
		}
	}
	for n < len(o.frames) {
		has, err := p.has(ctx, o, n)
		if err == nil && !has {
			// In a shard that goes on with its positions, what was erased has those that its erasure record names.
			if has = p.t.takenByRetention(p.lane, o.month, o.src); !has && p.unproven {
				has, err = p.r.erasedWhole(ctx, p.t, o.src, o.frames[n], o.payloads[n])
			}
		}
		if err != nil || !has {
			return n, err
		}
		n++
	}
	return n, nil
}

// has reports whether ClickHouse has a frame of a message: above the frames of the shards whose
// ends are gone, and for one that may have been routed long before, anywhere in the lane.
func (p *storedPass) has(ctx context.Context, o *offered, n int) (bool, error) {
	f, t := &o.frames[n], p.t
	var reader frame.Reader
	if err := reader.Open(o.payloads[n], &t.topic, f.Schema); err != nil {
		return false, err
	}
	for _, ref := range p.behind[o.month] {
		if has, err := p.r.db.Holds(ctx, ref, f, &reader, t.tail(ref.ID)+1, math.MaxUint64); err != nil || has {
			return has, err
		}
	}
	if !o.old {
		return false, nil
	}
	for id, ref := range t.where {
		if ref.Month != o.month || t.lane[id] != p.lane || t.counts[id].Rows == 0 {
			continue
		}
		if has, err := p.r.db.Holds(ctx, ref, f, &reader, 1, math.MaxUint64); err != nil || has {
			return has, err
		}
	}
	return false, nil
}

// take has the windows take the frames that the checkpoint passes, and forget those that are routed
// again, which it counts.
func (p *storedPass) take(o *offered, stored int, whole bool) {
	cp := &p.l.cp
	for i, f := range o.frames {
		seen := p.window(f)
		switch {
		case i < stored && seen == checkpoint.Fresh:
			if p.follows && whole {
				cp.Windows = checkpoint.Windows(cp.Windows).Take(f, o.msg.Sequence)
			}
		case i >= stored && o.old && seen == checkpoint.Repeated && p.lost[o.month] && !p.l.held[number{f.Producer, f.Seq}]:
			cp.Windows = checkpoint.Windows(cp.Windows).Forget(f)
			fallthrough
		case i >= stored && o.old && seen == checkpoint.Fresh:
			a := p.again[o.month]
			p.again[o.month] = amount{a.frames + 1, a.rows + uint64(f.Rows)}
		}
	}
}

// pass moves the checkpoint beyond a message that is stored and follows such, or notes it as one of a run.
func (p *storedPass) pass(o *offered, stored int, whole bool) error {
	cp := &p.l.cp
	switch {
	case p.follows && whole:
		cp.Source, cp.Digest, cp.Stored, cp.At = o.msg.Sequence, checkpoint.SourceDigest(o.msg.Data), o.src.Stored, 0
	case stored == 0:
		p.follows, p.joins = false, false
	default:
		partly := stored
		if stored == len(o.frames) {
			partly = 0
		}
		if !cp.NoteStored(o.src, partly, p.joins) {
			return fmt.Errorf("repair: %s: ClickHouse has more than %d runs of messages after message %d of %s, which it has not: nothing is changed",
				schemas.RoutedSubject(p.t.topic.Name, p.l.token), checkpoint.MaxStoredRuns, cp.Source, schemas.StreamEvents)
		}
		p.follows, p.joins = false, partly == 0
	}
	return nil
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
