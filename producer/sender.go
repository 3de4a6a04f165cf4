package producer

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// sender is the goroutine that closes, encodes, sends and settles frames. It
// alone moves frames in and out of windows and calls those that wait for one.
type sender struct {
	p    *Producer
	link link

	woken chan struct{}
	stop  chan struct{}
	done  chan struct{}

	inFlight      int // frames in windows
	inFlightBytes int // their payloads, as weigh counts them
	budget        budget
	turn          int       // the lane that is served first
	lastError     time.Time // when OnError was last called
	abandoned     int       // events given up at the end; read after done

	well atomic.Bool // the last frames went through at the first attempt

	away  atomic.Bool // spool.away, for Close
	spool *spooler    // nil under every policy but Spool

	mu      sync.Mutex
	answers []answer
	calls   []call
}

// call is waiters of a settled frame, to be called without a lock.
type call struct {
	waiters []waiter
	err     error
}

func newSender(p *Producer, l link) *sender {
	s := &sender{p: p, link: l, budget: newBudget(p.cfg.InFlightBytes), woken: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	s.well.Store(true)
	if p.spool != nil {
		s.spool = &spooler{index: len(p.lanes)}
	}
	return s
}

// wake makes the sender look at its lanes soon.
func (s *sender) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// answered takes what the stream said. It never waits: it is called from the
// connection's goroutine.
func (s *sender) answered(a answer) {
	s.mu.Lock()
	s.answers = append(s.answers, a)
	s.mu.Unlock()
	s.wake()
}

// post has the waiters called by the sender. Caller holds the lane's mutex, so
// that the sender cannot have ended in between.
func (s *sender) post(waiters []waiter, err error) {
	if len(waiters) == 0 {
		return
	}
	s.mu.Lock()
	s.calls = append(s.calls, call{waiters, err})
	s.mu.Unlock()
	s.wake()
}

func (s *sender) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-s.woken:
		case <-timer.C:
		case <-s.link.reconnected():
			s.sendAllAgain()
			s.p.look(true) // what was removed meanwhile is not sent to
		case <-s.stop:
			s.abandon()
			return
		}
		next := s.pass()
		if next.IsZero() {
			timer.Reset(time.Hour)
		} else {
			timer.Reset(time.Until(next))
		}
	}
}

// pass serves every lane until there is nothing to do, and returns when there
// will be; zero for not before the sender is woken.
func (s *sender) pass() (next time.Time) {
	for again := true; again; {
		s.resolve()
		if gone := s.p.gone.Load(); gone != nil && s.spool == nil {
			s.giveUpGone(*gone)
		}
		again, next = false, time.Time{}
		well, now := true, time.Now()
		s.turn++
		if s.spool != nil {
			s.callSafe()
			s.notePressure(now)
			again = s.replay(now)
		}
		lanes := s.lanes()
		for i := range lanes {
			l := lanes[(s.turn+i)%len(lanes)]
			encoded, at, ok := s.serve(l, now)
			again, well = again || encoded, well && ok
			if s.spool != nil {
				much := keepUnanswered
				if s.spool.away || s.spool.pressed.Load() {
					much = keepQueued
				}
				if kept := s.keep(l, now, much); !kept.IsZero() {
					next = earlier(next, kept)
				}
			}
			if !at.IsZero() {
				next = earlier(next, at)
			}
		}
		s.well.Store(well)
		select {
		case <-s.stop:
			return now // run sees stop, or is woken at once and sees it then
		default:
		}
	}
	return next
}

// serve closes what is due in a lane, encodes at most one frame of it, and
// sends what may be sent.
func (s *sender) serve(l *lane, now time.Time) (encoded bool, next time.Time, well bool) {
	l.mu.Lock()
	l.closeDue(now)
	f := l.claim()
	l.mu.Unlock()
	if f != nil {
		l.encode(f)
		encoded = true
	}
	next, well = s.send(l, now)
	return encoded, next, well
}

// send sends what of a lane may be sent, and returns when it next needs that.
func (s *sender) send(l *lane, now time.Time) (next time.Time, well bool) {
	elects := s.p.elects() // it waits while a write of the connection is not taken, so not with mu, which Log takes
	for {
		l.mu.Lock()
		if s.p.paused.Load() { // the watch wakes it
			_, well = l.wakeAt()
			l.mu.Unlock()
			return time.Time{}, well
		}
		var f *laneFrame
		if s.p.confirmed.Load() {
			f = l.nextSend(now, s.budget.space(s.inFlightBytes), elects)
		}
		if f == nil {
			next, well = l.wakeAt()
			l.mu.Unlock()
			return next, well
		}
		silent := f.attempts > 1 && !f.refused
		f.refused = false
		if f.attempts == 1 {
			s.inFlightBytes += weigh(len(f.payload))
			s.inFlight++
		} else {
			l.resent++
		}
		l.mu.Unlock()
		if silent {
			s.budget.congested(f.sent, now)
			s.tell(fmt.Errorf("%w: no answer to frame %d of lane %d; sending it again, attempt %d", ErrOutcomeUnknown, f.seq, l.number, f.attempts))
		}
		if err := s.link.publish(l, f); err != nil {
			s.take(answer{lane: l.index, seq: f.seq, outcome: sendOutcome(err), err: err}, now)
		}
	}
}

// resolve works through the answers and calls who waited.
func (s *sender) resolve() {
	s.mu.Lock()
	answers, calls := s.answers, s.calls
	s.answers, s.calls = nil, nil
	s.mu.Unlock()
	now := time.Now()
	for _, a := range answers {
		s.take(a, now)
	}
	if len(answers) > 0 {
		s.mu.Lock()
		calls = append(calls, s.calls...)
		s.calls = nil
		s.mu.Unlock()
	}
	for _, c := range calls {
		for _, w := range c.waiters {
			w.done(c.err)
		}
	}
}

// take does what an answer says with its frame. Answers may come twice, late,
// or for a frame that was settled: only the first to settle it counts.
func (s *sender) take(a answer, now time.Time) {
	if a.err != nil {
		s.tell(a.err)
	}
	l := s.lane(a.lane)
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.outcome <= busy || a.outcome == gone && s.spool != nil { // on disk it waits for the next producer
		for f := range l.window.all {
			if f.seq == a.seq {
				f.refused = true
				f.due = now.Add(retryWait(f.attempts, random()))
				if a.outcome == busy {
					s.budget.congested(f.sent, now)
				}
			}
		}
		return
	}
	f := l.window.take(a.seq)
	if f == nil {
		return
	}
	n := weigh(len(f.payload))
	switch a.outcome {
	case stored:
		if f.attempts == 1 { // of several, it is unknown which was answered
			s.budget.stored(n, s.inFlightBytes, f.sent, now)
			if a.had > 0 && f.keyed != nil {
				f.keyed.again.Add(1)
			}
		}
		if a.had > 0 && f.keyed != nil {
			f.keyed.hadAt(a.had)
		}
		l.ack(f)
	case tooBig:
		l.giveUp(f, CauseMaxPayload, refusal(a.err))
	case gone:
		l.giveUp(f, CauseConnectionClosed, refusal(a.err))
	}
	s.inFlightBytes -= n
	s.inFlight--
}

// sendAllAgain makes every unanswered frame due: after a reconnect no answer to
// what was sent before will come.
func (s *sender) sendAllAgain() {
	now := time.Now()
	for _, l := range s.lanes() {
		l.mu.Lock()
		for f := range l.window.all {
			f.due = now
		}
		l.mu.Unlock()
	}
}

// abandon gives up everything: Close's time is over.
func (s *sender) abandon() {
	s.resolve()
	if s.spool != nil {
		s.abandoned = s.leave()
		s.resolve()
		return
	}
	for _, l := range s.p.lanes {
		s.abandoned += l.abandon()
	}
	s.resolve()
}

// tell passes an error on, at most one a second: trouble comes with every frame.
func (s *sender) tell(err error) {
	now := time.Now()
	if s.p.cfg.Hooks.OnError == nil || now.Sub(s.lastError) < time.Second {
		return
	}
	s.lastError = now
	s.p.cfg.Hooks.OnError(err)
}

// sendOutcome says what an error of publishing means for the frame.
func sendOutcome(err error) outcome {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return tooBig
	case errors.Is(err, nats.ErrConnectionClosed):
		return gone
	}
	return again
}
