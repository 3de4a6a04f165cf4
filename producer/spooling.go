package producer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/almanac-events/almanac/producer/spool"
)

// The policy Spool. A closed frame goes to disk when it cannot go out:
//
//	away      a frame was refused, or had no answer for spoolAfter, or the topic is
//	          not confirmed yet: then every closed frame goes, those in flight first
//	pressed   Log has filled half of the buffer
//	behind    earlier frames of its lane are on disk, and it waited for spoolAfter
//
// It keeps the seq it was sent under, or gets its lane's next, and never changes
// it. A lane's records are in the order of their seqs, because what is in flight
// is written before what is not. Frames are read back in the order they were
// written and sent as any other; those of an earlier producer under its id, one
// producer at a time.
//
// No frame is sent whose seq is schemas.MaxInFlight or more above one that is on
// disk without a durable mark (floor): whatever is sent again after a kill, a
// router can tell whether it had it.

// spoolAfter is how long a frame may be without an answer before it is put on
// disk: ten round trips with fsync, and what a kill may cost in an outage.
const spoolAfter = 250 * time.Millisecond

// keepAgain is the pause after the spool took nothing: it is full, or the disk
// fails.
const keepAgain = time.Second

// spooled is a lane's part in the spool. Guarded by the lane's mutex.
type spooled struct {
	first, last uint64 // seqs on disk that may have no durable mark; last 0: none
	marked      uint64 // what the spool was told is settled
	held        []heldWaiter
	purgeAt     int // length of held at which those who left are looked for
}

// heldWaiter waits for a frame that is only on disk.
type heldWaiter struct {
	seq uint64
	waiter
}

func (l *lane) stream() spool.Stream { return spool.Stream{Producer: l.id, Lane: l.number} }

// behind says whether frames of the lane are on disk that were not read back.
// Caller holds mu.
func (l *lane) behind() bool { return l.last >= l.window.next }

// floor is the lowest seq that may be sent again after a kill. Caller holds mu.
func (l *lane) floor() uint64 {
	if l.spool.last == 0 {
		return math.MaxUint64
	}
	durable := l.p.spool.Durable(l.stream())
	if durable >= l.spool.last {
		l.spool.last = 0
		return math.MaxUint64
	}
	return max(l.spool.first, durable+1)
}

// mark tells the spool up to where the lane is settled. Caller holds mu.
func (l *lane) mark() {
	if l.spool.last == 0 {
		return
	}
	if up := min(l.window.oldest-1, l.spool.last); up > l.spool.marked {
		l.spool.marked = up
		l.p.spool.Ack(l.stream(), up)
	}
}

// onSpool notes that a record has seq. Caller holds mu.
func (l *lane) onSpool(seq uint64) {
	if l.spool.last == 0 {
		l.spool.first = seq
		l.spool.marked = max(l.spool.marked, seq-1)
	}
	l.spool.last = max(l.spool.last, seq)
}

// keeping says how much of a lane goes to disk.
type keeping int

const (
	keepUnanswered keeping = iota // what the stream does not answer for, and what has waited long
	keepQueued                    // what waits too: the stream is away, or the buffer is filling up
	keepAll                       // what was sent a moment ago too: the producer leaves
)

// toKeep is the next frame to put on disk, or nil. Caller holds mu.
func (l *lane) toKeep(now time.Time, much keeping) *laneFrame {
	queued := len(l.queue) > 0 && l.queue[0].payload != nil &&
		(much >= keepQueued || l.behind() && !l.queue[0].awaited && now.Sub(l.queue[0].closed) >= spoolAfter)
	var first *laneFrame
	want := queued || much == keepAll
	for f := range l.window.all {
		if f.spooled {
			continue
		}
		if first == nil {
			first = f
		}
		want = want || f.away(now)
	}
	switch {
	case first != nil && want:
		return first
	case queued:
		return l.queue[0]
	}
	return nil
}

// away says whether the stream does not answer for a frame that was sent.
func (f *laneFrame) away(now time.Time) bool {
	return f.refused || f.attempts > 0 && now.Sub(f.sent) >= spoolAfter
}

// keepAt is when the lane next may have something to put on disk; zero for not
// before something else happens. Caller holds mu.
func (l *lane) keepAt() (at time.Time) {
	for f := range l.window.all {
		if !f.spooled {
			at = earlier(at, f.sent.Add(spoolAfter))
		}
	}
	if len(l.queue) > 0 && l.behind() && !l.queue[0].awaited {
		at = earlier(at, l.queue[0].closed.Add(spoolAfter))
	}
	return at
}

// spooler is the sender's part in the spool.
type spooler struct {
	pressed atomic.Bool
	cause   atomic.Pointer[string] // why the spool takes nothing; nil: it does
	failed  error                  // what it last said to that
	retryAt time.Time              // not before
	away    bool

	look    *spool.Record // read and not yet loaded
	earlier []*lane       // of an earlier producer, whose frames are sent now
	index   int           // the highest of a lane

	unsafe []unsafeCall // in the order of their records
	idle   []waiter     // wait until nothing is left of earlier producers; under sender.mu
	over   error        // what those hear who come after the end; under sender.mu
}

// unsafeCall is waiters of a frame that left memory, until its record is durable.
type unsafeCall struct {
	record  uint64
	waiters []waiter
}

// press notes that Log has filled half of the buffer.
func (s *sender) press() {
	if s.spool.pressed.Load() {
		return
	}
	if s.p.buffer.above(2) {
		s.spool.pressed.Store(true)
		s.wake()
	}
}

// spoolCause is why an event found no room.
func (s *sender) spoolCause() string {
	s.spool.pressed.Store(true)
	s.wake()
	if c := s.spool.cause.Load(); c != nil {
		return *c
	}
	return CauseBufferFull
}

// notePressure notes whether frames get through (away), and whether the buffer has drained (pressed).
func (s *sender) notePressure(now time.Time) {
	s.spool.away = !s.p.confirmed.Load()
	for _, l := range s.lanes() {
		l.mu.Lock()
		for f := range l.window.all {
			s.spool.away = s.spool.away || f.away(now)
		}
		l.mu.Unlock()
	}
	s.away.Store(s.spool.away)
	if s.spool.pressed.Load() && !s.p.buffer.above(4) {
		s.spool.pressed.Store(false)
	}
}

// keep puts on disk what of a lane should be there, and returns when to look
// again; zero for not before something else happens.
func (s *sender) keep(l *lane, now time.Time, much keeping) time.Time {
	if now.Before(s.spool.retryAt) {
		return s.spool.retryAt
	}
	for {
		l.mu.Lock()
		f := l.toKeep(now, much)
		if f == nil {
			at := l.keepAt()
			l.mu.Unlock()
			return at
		}
		seq := f.seq
		if seq == 0 {
			seq = l.last + 1
		}
		r := spool.Record{Topic: l.p.topic.Name, Month: f.month, Lane: l.number, Head: f.head, Payload: f.payload}
		r.Head.Producer, r.Head.Seq = l.id, seq
		l.mu.Unlock() // only this goroutine takes encoded frames away

		n, err := s.p.spool.Append(&r)
		if err != nil {
			s.keepFailed(err)
			s.spool.retryAt = now.Add(keepAgain)
			return s.spool.retryAt
		}
		s.spool.cause.Store(nil)
		l.mu.Lock()
		l.onSpool(seq)
		f.spooled = true
		if f.seq == 0 { // it was in the queue, and now is only on disk
			l.last = seq
			l.queue[0] = nil
			l.queue = l.queue[1:]
			l.free(f)
			l.onDisk += f.events
			s.spool.unsafe = append(s.spool.unsafe, unsafeCall{n, f.waiters})
			l.hold(seq, f.waiters)
			f.waiters = nil
		}
		l.mu.Unlock()
	}
}

func (s *sender) keepFailed(err error) {
	cause := CauseSpoolFailed
	if errors.Is(err, spool.ErrFull) || errors.Is(err, syscall.ENOSPC) {
		cause = CauseSpoolFull
	}
	s.spool.cause.Store(&cause)
	s.spool.failed = fmt.Errorf("the spool takes no more frames: %w", err)
	s.tell(s.spool.failed)
}

// hold keeps the waiters that stay. Caller holds mu.
func (l *lane) hold(seq uint64, ws []waiter) {
	for _, w := range ws {
		if w.stay {
			l.spool.held = append(l.spool.held, heldWaiter{seq, w})
		}
	}
	if len(l.spool.held) > l.spool.purgeAt {
		l.spool.held = slices.DeleteFunc(l.spool.held, func(h heldWaiter) bool { return h.left.Load() })
		l.spool.purgeAt = 2*len(l.spool.held) + 64
	}
}

// release hands over the waiters of the frame of seq, and ends those of frames
// before it: they are lost. Caller holds mu.
func (l *lane) release(seq uint64) (ws []waiter) {
	var lost []waiter
	l.spool.held = slices.DeleteFunc(l.spool.held, func(h heldWaiter) bool {
		switch {
		case h.seq < seq:
			lost = append(lost, h.waiter)
		case h.seq == seq:
			ws = append(ws, h.waiter)
		}
		return h.seq <= seq
	})
	l.p.sender.post(lost, errLost)
	return ws
}

// callSafe tells those whose frames have become durable on disk.
func (s *sender) callSafe() {
	if len(s.spool.unsafe) == 0 {
		return
	}
	safe, n := s.p.spool.Safe(), 0
	for n < len(s.spool.unsafe) && s.spool.unsafe[n].record <= safe {
		for _, w := range s.spool.unsafe[n].waiters {
			w.done(ErrSpooled)
		}
		n++
	}
	s.spool.unsafe = slices.Delete(s.spool.unsafe, 0, n)
}
