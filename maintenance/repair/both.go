package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// Both streams may lose their ends at once: with SHARDS went a lane's checkpoint and the
// frames behind it, and EVENTS does not hold the messages to route again. The registry's
// copy of the checkpoint tells how far the lane was. What ClickHouse has of that is left
// where it is, in shards that are sealed. What it has not is lost, and is entered in the
// new checkpoint with its positions. What EVENTS still holds and ClickHouse lacks is
// routed again.

// bothLost is what a lane's copy in the registry knows beyond both streams, and why
// EVENTS is not what it saw; an empty reason when one of the two streams has it all.
func (r *Repairer) bothLost(ctx context.Context, t *found, token string) (known schemas.Checkpoint, why string, err error) {
	known = t.copies[token]
	have := t.lanes[token].Checkpoint
	if !have.Forgets(&known) {
		return known, "", nil
	}
	why, err = streams.Misfit(ctx, r.js, schemas.LaneFilter(t.topic.Name, token), &known)
	return known, why, err
}

// frames and rows of a month.
type amount struct{ frames, rows uint64 }

// resumeBoth moves a lane's checkpoint, which stands where the copy does, to the last
// message of which SHARDS has a trace, in the next era. What follows it in EVENTS is
// routed again unless ClickHouse has it (passStored). It returns what comes back so.
func (r *Repairer) resumeBoth(ctx context.Context, t *found, l *lostLane, p *Plan) (again map[schemas.Month]amount, err error) {
	res, err := streams.Resume(ctx, r.js, schemas.LaneFilter(t.topic.Name, l.token), &l.cp)
	if err != nil {
		return nil, err
	}
	if !res.Proven { // EVENTS lost messages, and gave none again: all that it has is looked at
		l.cp.Source, l.cp.Digest, l.cp.Stored, l.cp.At = l.have.Source, l.have.Digest, l.have.Stored, l.have.At
		l.cp.Era++
		return nil, nil
	}
	again = map[schemas.Month]amount{}
	for _, m := range res.Doubt {
		msg, err := streams.DecideAt(ctx, r.js, schemas.StreamEvents, m.Seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("repair: message %d of %s: %w", m.Seq, schemas.StreamEvents, err)
		}
		stored, err := r.isStored(ctx, t, msg)
		if err != nil {
			return nil, err
		}
		month, _, err := schemas.ParseEventsSubject(msg.Subject, &t.topic)
		if stored || err != nil {
			continue
		}
		frames, _ := r.judge(&t.topic, msg)
		a := again[month]
		for _, f := range frames {
			a.frames, a.rows = a.frames+1, a.rows+uint64(f.Rows)
		}
		again[month] = a
	}
	res.Cut.Both, res.Cut.Lost, res.Cut.Messages = true, nil, 0
	l.cp = l.cp.Recut(res.After, res.Digest, res.Stored, res.Cut)
	p.note("%s: the lane had been routed up to message %d of %s; it goes on behind message %d", schemas.RoutedSubject(t.topic.Name, l.token), res.Cut.To, schemas.StreamEvents, res.After)
	return again, nil
}

// lostFrames are the positions of a shard that the copy knows and neither SHARDS nor
// ClickHouse has.
func (t *found) lostFrames(ref schemas.ShardRef, known schemas.Tail) (f schemas.LostFrames, ok bool) {
	e := t.entries[ref.ID]
	end, rows := t.tail(ref.ID), uint64(0)
	if c := t.chains[ref.ID]; len(c) > 0 {
		rows = c.last().shardRows
	}
	if head := e.Head(t.counts[ref.ID].Head); head > end {
		tally := t.tallies[ref.ID]
		_, gone := tally.GoneUpTo(head)
		end, rows = head, t.counts[ref.ID].Rows+gone
	}
	if e.Gone() || e.Status != registry.Active && e.SealedAt >= known.Pos || known.Pos <= end {
		return f, false
	}
	return schemas.LostFrames{Shard: ref.ID, Month: ref.Month, From: end + 1, To: known.Pos, Rows: known.Rows - min(known.Rows, rows), Found: time.Now().UnixNano()}, true
}

// nameLost enters what is lost in the checkpoint, without what comes back from EVENTS, and
// in the plan.
func (l *lostLane) nameLost(t *found, again map[schemas.Month]amount, p *Plan) {
	for _, f := range l.lost {
		a := again[f.Month]
		frames, rows := min(a.frames, f.To-f.From+1), min(a.rows, f.Rows)
		again[f.Month] = amount{a.frames - frames, a.rows - rows}
		if f.From, f.Rows = f.From+frames, f.Rows-rows; f.From > f.To {
			continue
		}
		l.cp.AddLost(f)
		ref := schemas.ShardRef{Topic: t.topic.Name, Month: f.Month, ID: f.Shard}
		p.add(Action{Do: Lost, Topic: ref.Topic, Where: ref.String(), From: f.From, To: f.To, Rows: f.Rows, ref: ref, topic: &t.topic,
			Detail: fmt.Sprintf("%d rows: %s and %s lost their ends before these frames were stored", f.Rows, schemas.StreamEvents, schemas.StreamShards)})
	}
}
