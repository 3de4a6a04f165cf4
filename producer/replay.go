package producer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/almanac-events/almanac/producer/spool"
)

// replay moves frames from the spool into the windows of their lanes while
// there is room, and sends them. It reads one frame ahead.
func (s *sender) replay(now time.Time) (moved bool) {
	if !s.p.confirmed.Load() || s.p.paused.Load() {
		return false
	}
	for {
		if s.spool.look == nil {
			r, err := s.p.spool.Next()
			switch {
			case errors.Is(err, io.EOF):
				s.readAll()
				return moved
			case err != nil:
				s.tell(err)
				continue
			}
			s.spool.look = r
		}
		l := s.laneOf(s.spool.look)
		if l == nil {
			return moved // frames of another earlier producer are under way
		}
		if loaded, done := s.load(l, s.spool.look); !done {
			return moved
		} else if loaded {
			moved = true
			s.send(l, now)
		}
		s.spool.look = nil
	}
}

// laneOf is the lane a record belongs to; nil for not yet.
func (s *sender) laneOf(r *spool.Record) *lane {
	if r.Head.Producer == s.p.id && r.Lane < len(s.p.lanes) {
		return s.p.lanes[r.Lane]
	}
	for _, l := range s.spool.earlier {
		if l.stream() == r.Stream() {
			return l
		}
	}
	if len(s.spool.earlier) > 0 && s.spool.earlier[0].id != r.Head.Producer && !s.retire() {
		return nil
	}
	s.spool.index++
	l := &lane{p: s.p, number: r.Lane, id: r.Head.Producer, earlier: true, index: s.spool.index, window: newWindow(s.p.cfg.InFlight)}
	s.spool.earlier = append(s.spool.earlier, l)
	return l
}

// retire forgets the lanes of an earlier producer when all of them are settled.
func (s *sender) retire() bool {
	for _, l := range s.spool.earlier {
		if l.window.count > 0 { // only this goroutine changes it
			return false
		}
	}
	s.spool.earlier = nil
	return true
}

// load puts a record into its lane's window. done is false when there is no room
// yet; loaded is false when the lane has it, or had it, or when its topic was removed and declared again.
func (s *sender) load(l *lane, r *spool.Record) (loaded, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Head.Seq < l.window.next {
		return false, true
	}
	if !l.window.fits(r.Head.Seq, l.floor()) || l.window.held() || weigh(len(r.Payload)) > s.budget.space(s.inFlightBytes) {
		return false, false
	}
	payload, _ := s.p.payloads.get()
	f := &laneFrame{
		month: r.Month, events: r.Head.Rows, head: r.Head, payload: append(payload[:0], r.Payload...),
		spooled: true, loaded: true,
	}
	l.window.skipTo(r.Head.Seq)
	l.window.add(f)
	l.last = max(l.last, f.seq)
	l.onSpool(f.seq)
	if l.earlier {
		l.onDisk += f.events
	}
	f.waiters = l.release(f.seq)          // who waits until it is stored: hold kept them while the frame was on disk alone
	if s.p.topic.Earlier(f.head.Schema) { // of a topic of the name that was removed
		l.giveUp(l.window.take(f.seq), CauseTopicRemoved, errTopicGone)
		s.tell(fmt.Errorf("producer of %q: frame %d of the spool with %d events is not sent: %w, and declared again", s.p.topic.Name, f.seq, f.events, errTopicGone))
		return false, true
	}
	return true, true
}

// readAll settles what is known once the spool has been read to its end: frames
// of this producer that did not come back are lost, and when nothing of earlier
// ones is under way, those who wait for that are told.
func (s *sender) readAll() {
	for _, l := range s.p.lanes {
		l.mu.Lock()
		lost := l.onDisk
		for f := range l.window.all {
			if f.loaded {
				lost -= f.events
			}
		}
		if lost > 0 || l.behind() {
			l.window.skipTo(l.last + 1)
			l.onDisk -= lost
			if lost > 0 {
				l.drop(CauseSpoolDamaged, lost)
				l.p.report.note()
			}
			l.p.sender.post(l.release(l.last), errLost)
			l.mark()
		}
		l.mu.Unlock()
	}
	if !s.retire() {
		return
	}
	s.mu.Lock()
	ws := s.spool.idle
	s.spool.idle = nil
	s.mu.Unlock()
	for _, w := range ws {
		w.done(nil)
	}
}

// whenReplayed has w called when nothing of earlier producers is in the spool.
func (s *sender) whenReplayed(w waiter) {
	s.mu.Lock()
	if s.spool.over != nil {
		s.mu.Unlock()
		w.done(s.spool.over)
		return
	}
	s.spool.idle = append(slices.DeleteFunc(s.spool.idle, func(w waiter) bool { return w.left.Load() }), w)
	s.mu.Unlock()
	s.wake()
}

// lanes is every lane there is, those of an earlier producer included.
func (s *sender) lanes() []*lane {
	if s.spool == nil || len(s.spool.earlier) == 0 {
		return s.p.lanes
	}
	return append(slices.Clip(s.p.lanes), s.spool.earlier...)
}

// lane is the one an answer names, or nil: it was settled before.
func (s *sender) lane(index int) *lane {
	if index < len(s.p.lanes) {
		return s.p.lanes[index]
	}
	if s.spool != nil {
		for _, l := range s.spool.earlier {
			if l.index == index {
				return l
			}
		}
	}
	return nil
}
