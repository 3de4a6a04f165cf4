package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/frame"
)

// rebuild makes a lane's checkpoint again. Where the lane is follows from what came
// out of it: the frames of its shards and its dead letters. The windows are filled
// from the frames, so that what is routed again is known as repeated, and from
// ClickHouse where SHARDS lost its end. A checkpoint that is there is gone on from:
// it was read after the frames, and knows producers whose frames were purged. Where
// EVENTS lost its end, the lane goes on where that was (resume).
func (r *Repairer) rebuild(ctx context.Context, t *found, n int, l *lostLane, p *Plan) error {
	cp, have := &l.cp, l.have
	*cp = have.Checkpoint
	if have.Seq == 0 {
		p.note("%s: how many repeated frames it refused, and dead letters that were dropped, is no longer known", schemas.RoutedSubject(t.topic.Name, l.token))
	}
	if k := l.known; k != nil {
		cp.Source, cp.Digest, cp.Stored, cp.At, cp.Era = k.Source, k.Digest, k.Stored, k.At, k.Era
	}
	cp.Windows, cp.Tails, l.held = slices.Clone(have.Windows), nil, map[number]bool{}
	l.heads = map[schemas.ShardRef]uint64{}
	cp.Frames, cp.Rows = 0, 0
	kept := int64(0)                             // rows that no checkpoint counts
	lostFrames, lostRows := uint64(0), uint64(0) // of those that the checkpoint counts
	for _, ref := range t.refs() {
		c := t.chains[ref.ID]
		if t.lane[ref.ID] != n {
			continue
		}
		if len(c) > 0 {
			if at := c.last(); cp.Behind(at.era, at.source) {
				cp.Source, cp.Era, cp.Stored, cp.At, cp.Digest = at.source, at.era, at.stored, 0, ""
			}
			cp.Rows += max(t.routed[ref.ID], c.last().shardRows)
		} else {
			cp.Rows += t.routed[ref.ID]
		}
		cp.Frames += t.end(ref.ID)
		e := t.entries[ref.ID]
		if head := t.counts[ref.ID].Head; head > 0 && !e.Gone() {
			l.heads[ref] = head
		}
		if e.Gone() && len(c) == 0 {
			cp.Rows += e.DroppedRows
		}
		kept += e.KeptRows()
		behind := !e.Gone() && t.given(ref.ID) > t.tail(ref.ID)
		if l.known != nil {
			if lost, counted, ok := t.lostFrames(ref, l); ok {
				behind, l.lost = true, append(l.lost, lost)
				lostFrames, lostRows = lostFrames+counted.frames, lostRows+counted.rows
			}
		}
		if behind {
			l.behind = append(l.behind, ref)
		}
		// It ends early in SHARDS: below what was stored or the lane had given, or below where it was
		// left or sealed. completeEnd gives it its end once the checkpoint is written.
		if behind || t.unsettled(ref.ID) {
			l.cut = append(l.cut, ref)
		}
	}
	_, err := streams.Frames(ctx, r.js, schemas.ShardsFilter(t.topic.Name), func(ref schemas.ShardRef, pl schemas.Placed, _ uint64, _ time.Time) error {
		if t.lane[ref.ID] == n && len(l.lost) > 0 {
			l.held[number{pl.Producer, pl.Seq}] = true
		}
		if t.lane[ref.ID] == n && have.Behind(pl.SourceEra, pl.SourceSeq) && checkpoint.Windows(cp.Windows).Check(pl.Frame) == checkpoint.Fresh {
			cp.Windows = checkpoint.Windows(cp.Windows).Take(pl.Frame, pl.SourceSeq)
		}
		return nil
	})
	if err != nil {
		return err
	}
	cp.Rows = uint64(max(0, int64(cp.Rows)-kept))
	cp.Frames, cp.Rows = max(cp.Frames, have.Frames-min(have.Frames, lostFrames)), max(cp.Rows, have.Rows-min(have.Rows, lostRows))
	byAge := func(a, b schemas.Shard) int { return registry.Compare(t.entries[a], t.entries[b]) }
	slices.SortFunc(l.cut, func(a, b schemas.ShardRef) int { return byAge(a.ID, b.ID) }) // a router asks for the youngest
	slices.SortFunc(l.lost, func(a, b checkpoint.LostFrames) int { return byAge(a.Shard, b.Shard) })
	if err := r.countDead(ctx, t.topic.Name, l); err != nil {
		return err
	}
	routed := l.cp // how far the lane was
	if l.known != nil {
		if err := r.resume(ctx, t, l, p); err != nil {
			return err
		}
	}
	again, err := r.passStored(ctx, t, n, l, &routed)
	if err != nil {
		return err
	}
	l.nameLost(t, again, p)
	return r.anchor(ctx, t, cp)
}

// anchor has a checkpoint name the message that it stands at, where EVENTS has it.
func (r *Repairer) anchor(ctx context.Context, t *found, cp *checkpoint.Checkpoint) error {
	if cp.Digest != "" || cp.Source == 0 {
		return nil
	}
	cp.At = 0
	msg, err := streams.DecideAt(ctx, r.js, schemas.StreamEvents, cp.Source)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("repair: message %d of %s: %w", cp.Source, schemas.StreamEvents, err)
	}
	if strings.HasPrefix(msg.Subject, schemas.EventsPrefix(t.topic.Name)) {
		cp.Digest, cp.Stored = checkpoint.SourceDigest(msg.Data), msg.Time.UnixNano()
	}
	return nil
}

// resume moves a lane's checkpoint, which stands where the lane was, to the last message
// of EVENTS of which SHARDS has a trace, in the next era, as the lane's router would. Of
// what follows it no trace tells whether it was routed: passStored decides that.
func (r *Repairer) resume(ctx context.Context, t *found, l *lostLane, p *Plan) error {
	filter := schemas.LaneFilter(t.topic.Name, l.token)
	if l.letGo { // what is left of it may not be routed yet
		l.back()
		return nil
	}
	why, err := streams.Misfit(ctx, r.js, filter, &l.cp)
	if err != nil || why == "" {
		return err
	}
	res, err := streams.Resume(ctx, r.js, filter, &l.cp, r.reg.Taken)
	if err != nil {
		return err
	}
	subject := schemas.RoutedSubject(t.topic.Name, l.token)
	switch {
	case !res.Proven && l.both: // EVENTS lost messages, and gave none again: all that it has is looked at
		l.back()
	case !res.Proven: // SHARDS was restored from an older copy: the lane goes on where its frames say
		l.cp.Digest, l.cp.At = "", 0
	case l.both:
		res.Cut.Both, res.Cut.Lost, res.Cut.Messages = true, nil, 0
		l.cp = l.cp.Recut(res.After, res.Digest, res.Stored, res.Cut)
		p.note("%s: the lane had been routed up to message %d of %s; it goes on after message %d", subject, res.Cut.To, schemas.StreamEvents, res.After)
	default:
		l.cp = l.cp.Recut(res.After, res.Digest, res.Stored, res.Cut)
		p.note("%s: %s; the lane goes on after message %d, %d messages between %d and %d had not been routed and are gone unless their producers send them again",
			subject, why, res.After, res.Cut.Messages, res.Cut.After, res.Cut.To)
	}
	return nil
}

// back has a lane look at all that EVENTS has above the checkpoint that is there, in the next era: no copy knows more.
func (l *lostLane) back() {
	l.cp.Source, l.cp.Digest, l.cp.Stored, l.cp.At = l.have.Source, l.have.Digest, l.have.Stored, l.have.At
	l.cp.Era++
}

// countDead adds the dead letters of a lane, from above the checkpoint that is
// there, that are still kept. The windows take their frames, as the router's do.
func (r *Repairer) countDead(ctx context.Context, topic string, l *lostLane) error {
	have := &l.have
	var refused []letterFrame
	_, err := streams.Headers(ctx, r.js, schemas.StreamShards, schemas.DeadSubject(topic), 1, func(msg *streams.Message) error {
		h := msg.Header
		if _, _, token, err := schemas.EventsTokens(h.Get(schemas.HeaderSourceSubject)); err != nil || token != l.token {
			return nil
		}
		source, err := strconv.ParseUint(h.Get(schemas.HeaderSourceSeq), 10, 64)
		if err != nil {
			return nil
		}
		stored, err := strconv.ParseInt(h.Get(schemas.HeaderSourceTime), 10, 64)
		if err != nil {
			stored = 0
		}
		if known := have.Stored != 0 && stored != 0; known && stored <= have.Stored || !known && source <= have.Source {
			return nil
		}
		rows, err := strconv.ParseUint(h.Get(schemas.HeaderRows), 10, 64)
		if err != nil {
			rows = 1
		}
		if l.cp.Dead += rows; source > l.cp.Source {
			l.cp.Source, l.cp.Stored, l.cp.At, l.cp.Digest = source, stored, 0, ""
		}
		lies := h.Get(schemas.HeaderReason) == schemas.Reason(schemas.ErrFrameLies)
		if f, err := schemas.ParseFrame(h); err == nil && !lies && f.Producer != "" && checkpoint.Windows(l.cp.Windows).Check(f) == checkpoint.Fresh {
			refused = append(refused, letterFrame{f, msg.Sequence, source})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.takeRefused(ctx, l, refused)
}

// letterFrame is the frame that a dead letter says it is.
type letterFrame struct {
	schemas.Frame
	letter uint64 // sequence in SHARDS
	source uint64 // in EVENTS
}

// takeRefused has a lane's windows take the frames of dead letters that are intact, as the
// router that wrote them did. It reads the newest first, and none that is below the window of
// an intact one after it: there may be as many letters as SHARDS holds, each of the size of a frame.
func (r *Repairer) takeRefused(ctx context.Context, l *lostLane, refused []letterFrame) error {
	highest := map[string]uint64{}
	var intact []letterFrame
	for _, f := range slices.Backward(refused) {
		if f.Seq+schemas.MaxInFlight < highest[f.Producer] {
			continue
		}
		msg, err := streams.DecideAt(ctx, r.js, schemas.StreamShards, f.letter)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // settled meanwhile
		}
		if err != nil {
			return fmt.Errorf("repair: dead letter %d of %s: %w", f.letter, schemas.StreamShards, err)
		}
		if frame.Intact(msg.Data) {
			highest[f.Producer] = max(highest[f.Producer], f.Seq)
			intact = append(intact, f)
		}
	}
	for _, f := range slices.Backward(intact) {
		l.cp.Windows = checkpoint.Windows(l.cp.Windows).TakeRefused(f.Frame, f.source)
		l.held[number{f.Producer, f.Seq}] = true // by its letter: it is not routed again
	}
	return nil
}
