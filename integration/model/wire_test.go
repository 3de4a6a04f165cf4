package model

import "time"

// server is NATS or ClickHouse: up or down, with a clock of its own.
type server struct {
	w      *World
	name   string
	upAt   time.Duration // down until then
	ahead  time.Duration // how far its clock has jumped
	before Fault         // dies before it does what it is asked
	after  Fault         // dies after it, the answer unsent
	reboot func()        // what a restart does to its memory
}

func (s *server) up() bool             { return s.w.now >= s.upAt }
func (s *server) clock() time.Duration { return s.w.now + s.ahead }

// crash takes the server down for a while.
func (s *server) crash() {
	s.upAt = s.w.now + time.Duration(s.w.rng.IntN(int(10*time.Second)))
	s.reboot()
	if s.w.traces() {
		s.w.tracef("    %s dies", s.name)
	}
}

// carry brings a call to its server and the answer back, or not.
func (w *World) carry(c call) error {
	s := c.at
	switch {
	case !s.up():
		return errDown
	case w.faultTimes(s.before):
		s.crash()
		return errDown
	case c.late != nil && w.faultTimes(RequestLate):
		w.muchLater(s, c.late)
		return errTimeout
	}
	err := c.do()
	if c.late != nil && w.faultTimes(RequestTwice) {
		w.muchLater(s, c.late)
	}
	switch {
	case w.faultTimes(s.after):
		s.crash()
		return errTimeout
	case w.faultTimes(AnswerLost):
		return errTimeout
	}
	return err
}

// sent is a request on the wire: no process waits for it at the other end of do.
type sent struct {
	at   *server
	do   func()
	held int // until that step
}

// later puts a request on the wire.
func (w *World) later(at *server, do func()) {
	w.wire = append(w.wire, sent{at: at, do: do})
}

// muchLater has the wire hold a request back.
func (w *World) muchLater(at *server, do func()) {
	w.wire = append(w.wire, sent{at, do, w.steps + w.rng.IntN(1<<w.rng.IntN(11))})
}

// deliver takes any request from the wire to its server. When that is down the
// request is lost, or waits longer.
func (w *World) deliver() {
	if len(w.wire) == 0 {
		return
	}
	i := w.rng.IntN(len(w.wire))
	r := w.wire[i]
	if r.held > w.steps && !w.healed || !r.at.up() && w.coin(2) {
		return
	}
	w.wire[i] = w.wire[len(w.wire)-1]
	w.wire = w.wire[:len(w.wire)-1]
	switch {
	case !r.at.up():
	case w.faultTimes(RequestLost):
	case w.faultTimes(r.at.before):
		r.at.crash()
	default:
		if w.faultTimes(RequestTwice) {
			w.muchLater(r.at, r.do)
		}
		r.do()
	}
}
