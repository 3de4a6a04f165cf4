package producer

import (
	"context"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// admitted is what the producer works out about an event before it takes it.
type admitted struct {
	ts    int64 // unix ns
	now   int64 // unix ns
	size  int   // bytes of the buffer it takes
	worst int   // bytes it adds to a frame, at most
}

// rowBytes is what frame.Builder.RawBytes counts for a row beside its strings:
// time, id, dictionary keys, lengths and the attribute offset.
const rowBytes = 39

// admit fills in the event's defaults, checks its limits and measures it.
func (p *Producer) admit(ev *Event) (a admitted, err error) {
	if gone := p.gone.Load(); gone != nil {
		return a, *gone
	}
	a.now = p.now()
	a.ts = a.now
	if !ev.Time.IsZero() {
		if a.ts, err = schemas.UnixNs(ev.Time); err != nil {
			return a, err
		}
	}
	if ev.Service == "" {
		ev.Service = p.cfg.Service
	}
	if p.privacy != nil {
		p.privacy.Apply(ev)
	}
	p.topic.Complete(ev)
	if err = p.topic.CutBodies(ev); err != nil {
		return a, err
	}
	if err = p.topic.Check(ev, a.ts, a.now); err != nil {
		return a, err
	}
	if err = p.server.check(&p.topic, a.ts, a.now); err != nil {
		return a, err
	}
	n := ev.Bytes()
	a.size, a.worst = n+rowBytes, frame.MaxRowBytes(&p.topic, n, len(ev.Attrs))
	return a, nil
}

// makeSpace takes size bytes of the buffer for a logged event, by the policy. It
// returns why it could not, or "".
func (p *Producer) makeSpace(size int) (cause string) {
	if p.buffer.take(size) {
		if p.spool != nil {
			p.sender.press()
		}
		return ""
	}
	switch p.cfg.Policy {
	case Spool:
		return p.sender.spoolCause()
	case DropOldest:
		// Those who wait need no precedence here: a dropped frame makes room
		// for them too.
		for !p.buffer.grab(size) {
			if !p.evictOldest() {
				return CauseBufferFull
			}
		}
		return ""
	case Block:
		if err := p.buffer.wait(context.Background(), p.closing, size); err != nil {
			return CauseClosed
		}
		return ""
	}
	return CauseBufferFull
}

// add puts an admitted event, for which room was taken, into the open frame of
// its month and lane. It is false, and gives the room back, after Close.
func (p *Producer) add(ev *Event, a admitted, w waiter, urgent bool) bool {
	return p.addTo(p.laneOf(ev, a), ev, nil, a, w, urgent)
}

// laneOf is the lane of an admitted event, which gets its id here where that is part of the lane key.
func (p *Producer) laneOf(ev *Event, a admitted) *lane {
	if p.laneByID && ev.ID.IsZero() {
		ev.ID = p.ids.Next(a.now)
	}
	return p.lanes[schemas.LaneOf(&p.topic, ev, a.ts, p.id)]
}

// addTo is add for an event whose lane is known, or for a point where that is not nil.
func (p *Producer) addTo(l *lane, ev *Event, pt *batchedPoint, a admitted, w waiter, urgent bool) bool {
	l.lock()
	if l.shutting {
		l.mu.Unlock()
		p.buffer.release(1, a.size)
		return false
	}
	f := l.frameFor(a.ts)
	var full *laneFrame                             // that this event closed
	given := p.once && pt == nil && !ev.ID.IsZero() // ids that are made differ
	if f.events > 0 && (f.builder.MaxBytes(a.worst) > p.frameBytes || given && f.builder.IDs.Often(ev.ID)) {
		l.close(f)
		full, f = f, l.frameFor(a.ts)
	}
	if given {
		f.builder.IDs.Add(ev.ID)
	}
	opened := f.events == 0
	if pt != nil {
		f.builder.AppendPoint(pt.s.row, a.ts, p.ids.Next(a.now), pt.at.Value, pt.at.Start)
	} else {
		id := ev.ID
		if id.IsZero() {
			id = p.ids.Next(a.now)
		}
		f.builder.Append(ev, a.ts, id)
	}
	f.events++
	f.charge += a.size
	switch {
	case w.batch != nil:
		if f.batch != w.batch { // once for all its events here
			f.waiters = append(f.waiters, w.batch.add(0))
			f.batch = w.batch
		}
		f.awaited = true
	case w.done != nil:
		f.waiters = append(f.waiters, w)
		f.awaited = true
	}
	f.urgent = f.urgent || urgent
	l.logged++
	l.buffered++

	if f.builder.Full() {
		l.close(f)
		full = f
	}
	// The sender is behind: the caller that filled a frame encodes it, so that frames in
	// their large form stay few.
	help := full != nil && p.unencoded.Load() > maxUnencoded
	if help {
		full.claimed = true
	}
	hurry := urgent && l.idle() || l.waitsNoMore(f)
	l.mu.Unlock()

	if help {
		l.encode(full)
	}
	if opened || full != nil || hurry {
		p.sender.wake()
	}
	return true
}

// maxUnencoded bounds the closed frames that wait for the sender to encode
// them. A builder with its scratch has about 1 MiB, its encoded frame a tenth.
const maxUnencoded = 4

// evictOldest drops the oldest closed frame that was never sent and that
// no caller waits for. False when there is no such frame.
func (p *Producer) evictOldest() bool {
	for {
		var from *lane
		oldest := ^uint64(0)
		for _, l := range p.lanes {
			l.mu.Lock()
			if i := l.evictable(); i >= 0 && l.queue[i].order < oldest {
				from, oldest = l, l.queue[i].order
			}
			l.mu.Unlock()
		}
		if from == nil {
			return false
		}
		if from.evict(oldest) {
			return true
		}
	}
}

// dropNew counts an event that never came to a lane.
func (p *Producer) dropNew(cause string) {
	p.outer.mu.Lock()
	p.outer.logged++
	p.outer.drop(cause, 1)
	p.outer.mu.Unlock()
	p.report.note()
}
