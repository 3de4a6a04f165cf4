package model

import (
	"errors"
	"iter"
)

// What a process hears instead of an answer.
var (
	errDown    = errors.New("the server is down")
	errTimeout = errors.New("no answer")
	errCrashed = errors.New("crashed")
	errEnded   = errors.New("the run is over")
)

// call is what a process asks of a server. do runs at the server, at once and
// whole. late, if set, is what happens when the request arrives after the
// process has given up: nil for reads.
type call struct {
	what string
	at   *server
	do   func() error
	late func()
}

// process is a router, sink, janitor or reader: a function that runs until it
// asks a server something, and goes on when the scheduler says so. It is a
// coroutine: nothing runs beside it.
type process struct {
	w      *World
	name   string
	dies   Fault
	stalls Fault
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool

	call   call
	err    error // the answer
	asleep int   // a zombie until that step
	cuts   int   // of SHARDS, when a router's run began
	bound  bool  // it is a router
}

// connect begins a run over the connection that there is.
func (p *process) connect() { p.cuts, p.bound = p.w.struck[ShardsCut], true }

// outage reports whether NATS was started again on a shorter SHARDS since the run began.
func (p *process) outage() bool {
	return p.bound && p.cuts != p.w.struck[ShardsCut] && !p.w.broken(KnowsThroughRestart)
}

// newProcess prepares body, which is run again and again: each run begins with
// nothing but what it reads from the servers.
func (w *World) newProcess(name string, dies, stalls Fault, body func(*process) error) *process {
	p := &process{w: w, name: name, dies: dies, stalls: stalls}
	p.resume, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		for err := error(nil); !errors.Is(err, errEnded); {
			if err = body(p); err != nil && w.traces() {
				w.tracef("    %s starts again: %v", p.name, err)
			}
			if perr := p.pause(); perr != nil {
				err = perr
			}
		}
	})
	return p
}

// ask carries a call to its server and returns the answer.
func (p *process) ask(c call) error {
	p.call, p.err = c, nil
	if !p.yield(struct{}{}) {
		return errEnded
	}
	return p.err
}

// read asks something that changes nothing.
func (p *process) read(what string, at *server, do func()) error {
	return p.ask(call{what: what, at: at, do: func() error { do(); return nil }})
}

// pause lets others go first.
func (p *process) pause() error {
	return p.ask(call{})
}

// step moves the process by one answer.
func (p *process) step() {
	w := p.w
	if p.asleep > w.steps {
		return
	}
	if c := p.call; c.do != nil {
		p.call = call{} // answered
		if w.faultTimes(p.dies) {
			if c.late != nil && w.coin(2) { // it was on its way
				w.later(c.at, c.late)
			}
			p.err = errCrashed
		} else if c.at == w.nats && p.outage() {
			p.err = errDown
		} else {
			p.err = w.carry(c)
		}
		if w.traces() {
			w.tracef("%s: %s: %v", p.name, c.what, p.err)
		}
		if w.faultTimes(p.stalls) {
			p.asleep = w.steps + 4<<w.rng.IntN(9)
			return
		}
	}
	p.resume()
}
