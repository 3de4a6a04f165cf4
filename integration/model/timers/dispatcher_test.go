package timers

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// dispatcher follows the log and calls what is due, one attempt at a time.
type dispatcher struct {
	self     string
	lives    int
	run      int // of the lane: each loads all by itself
	followed int
	groups   []string // as this run met them; an entry has a number of it
	wheel    map[schemas.TimerKey]due
	held     map[schemas.TimerKey]held
	flight   string // the claim that is worked on

	stage   stage
	at      schemas.TimerKey
	seen    due
	record  timer.Record // what was read, then the claim
	claim   timer.Record
	nonce   uint64
	outcome timer.Record
	group   string // whose settings and secret the call goes by
}

// due is an entry of the wheel.
type due struct {
	at  int64
	seq uint64
	// run is that which made it, number that of the timer's group in it.
	run, number int
}

type held struct {
	owner string
	due   due
}

type stage int

const (
	idle stage = iota
	reading
	claiming
	lookingBack
	calling
	resolving
)

func (d *dispatcher) born(name string) {
	*d = dispatcher{self: fmt.Sprintf("%s.%d", name, d.lives+1), lives: d.lives + 1, wheel: map[schemas.TimerKey]due{}, held: map[schemas.TimerKey]held{}}
}

// enter puts a timer on the wheel, unless a newer record of it is there.
func (d *dispatcher) enter(key schemas.TimerKey, e due) {
	if old, ok := d.wheel[key]; !ok || old.seq <= e.seq {
		d.wheel[key] = e
	}
}

// runAgain begins another run of the lane, as after a front that could not be followed. The attempt under way goes on.
func (d *dispatcher) runAgain() {
	d.run, d.followed, d.groups = d.run+1, 0, nil
	d.wheel, d.held = map[schemas.TimerKey]due{}, map[schemas.TimerKey]held{}
}

// number returns the number of a group in this run.
func (d *dispatcher) number(group string) int {
	for i := range d.groups {
		if d.groups[i] == group {
			return i
		}
	}
	d.groups = append(d.groups, group)
	return len(d.groups) - 1
}

// named is the group with an entry's number in this run.
func (d *dispatcher) named(w *world, e due) string {
	if e.number >= len(d.groups) {
		w.fail("panic: group %d of %d", e.number, len(d.groups))
		return ""
	}
	return d.groups[e.number]
}

func (d *dispatcher) follow(w *world) {
	if d.followed == len(w.log) {
		return
	}
	e := w.log[d.followed]
	d.followed++
	if e.purged {
		return
	}
	if old, ok := d.wheel[e.Key]; ok && old.seq <= e.Seq {
		delete(d.wheel, e.Key)
	}
	delete(d.held, e.Key)
	at := due{e.Due, e.Seq, d.run, d.number(e.Key.Group)}
	switch {
	case e.State() == timer.StatePending:
		d.enter(e.Key, at)
	case e.State() != timer.StateFiring, e.Owner == d.self && e.Claim == d.flight:
	case e.Owner == d.self, w.gone(e.Owner):
		d.enter(e.Key, at)
	default:
		d.held[e.Key] = held{e.Owner, at}
	}
}

func (d *dispatcher) unhold(w *world) {
	for n := range keys {
		if h, ok := d.held[keyOf(n)]; ok && w.gone(h.owner) {
			d.enter(keyOf(n), h.due)
			delete(d.held, keyOf(n))
		}
	}
}

func (d *dispatcher) step(w *world) {
	if w.chance(150) {
		d.runAgain()
	}
	if w.rng.IntN(2) == 0 {
		d.follow(w)
		d.unhold(w)
		return
	}
	switch d.stage {
	case idle:
		for n := range keys {
			if e, ok := d.wheel[keyOf(n)]; ok && e.at <= w.now {
				d.at, d.seen, d.stage = keyOf(n), e, reading
				delete(d.wheel, d.at)
				d.group = d.named(w, e)
				return
			}
		}
	case reading:
		d.read(w)
	case claiming:
		d.put(w)
	case lookingBack:
		d.lookBack(w)
	case calling:
		d.call(w)
	case resolving:
		if _, a := w.put(d.outcome, d.claim.Seq, w.rng.Uint64(), false); a != unknown {
			d.rest()
		}
	}
}

func (d *dispatcher) rest() { d.stage, d.flight = idle, "" }

// again gives an entry back to the wheel of its run. Another run has loaded the record by itself.
func (d *dispatcher) again(w *world) {
	if d.seen.run == d.run || w.broken == EntryOfOlderRunKept {
		d.enter(d.at, d.seen)
	}
	d.rest()
}

// calledBy is the group that a call goes by: that of the record which was claimed.
func (d *dispatcher) calledBy(w *world) string {
	switch w.broken {
	case EntryOfOlderRunKept:
		return d.group
	case NamesOfAnotherRun:
		return d.named(w, d.seen)
	}
	return d.claim.Key.Group
}

func (d *dispatcher) read(w *world) {
	if w.chance(8) { // the answer lacks what is there
		if w.broken == CutAnswerBelieved {
			d.rest()
		} else {
			d.again(w)
		}
		return
	}
	e := w.last(d.at)
	if e == nil || e.Seq != d.seen.seq { // what is newer is on its way
		d.rest()
		return
	}
	d.record = e.Record
	if e.State() == timer.StateFiring {
		switch {
		case e.Owner == d.self && w.broken == OwnUnknownClaimSkipped:
			d.rest()
			return
		case e.Owner == d.self:
			d.claim, d.flight, d.stage = e.Record, e.Claim, calling
			return
		case !w.gone(e.Owner):
			d.again(w)
			return
		}
	}
	d.claim = timer.Claim(&d.record, d.self, fmt.Sprintf("%016x", w.rng.Uint64()), w.now)
	if w.broken == AttemptRaisedOnSecondClaim && e.State() == timer.StateFiring {
		d.claim.Attempt++
	}
	d.nonce, d.flight, d.stage = w.rng.Uint64(), d.claim.Claim, claiming
	if w.broken == CallBeforeClaim {
		d.make(w)
	}
}

func (d *dispatcher) put(w *world) {
	seq, a := w.put(d.claim, d.record.Seq, d.nonce, w.broken == ClaimWithoutExpectation)
	switch a {
	case stored:
		d.claim.Seq, d.stage = seq, calling
	case refused:
		d.rest()
	case unknown:
		d.stage = lookingBack
	}
}

func (d *dispatcher) lookBack(w *world) {
	e := w.last(d.at)
	switch {
	case e != nil && e.Claim == d.claim.Claim && e.State() == timer.StateFiring:
		d.claim.Seq, d.stage = e.Seq, calling
	case e != nil && e.Seq == d.record.Seq: // not stored yet: it may come late, and is then called as one's own
		d.again(w)
	default:
		d.rest()
	}
}

// make makes the call.
func (d *dispatcher) make(w *world) bool {
	ok := w.rng.IntN(3) > 0
	if w.specOf(&d.record) == nil {
		w.fail("the spec of record %d is gone", d.record.Seq)
	}
	w.calls = append(w.calls, call{Record: d.claim, group: d.calledBy(w), at: w.now, after: len(w.log), ok: ok})
	return ok
}

func (d *dispatcher) call(w *world) {
	ok := false
	if w.broken != CallBeforeClaim {
		if e := w.last(d.at); e == nil || e.Seq != d.claim.Seq {
			ok = true // deleted meanwhile, or taken over: it does not know, and calls; the spec was read before
			w.calls = append(w.calls, call{Record: d.claim, group: d.calledBy(w), at: w.now, after: len(w.log), ok: ok})
		} else {
			ok = d.make(w)
		}
	}
	v, c := timer.Outcome{Kind: timer.Success, Status: 200}, timer.Call{Status: 200}
	switch {
	case !ok && w.rng.IntN(2) == 0: // final
		v, c = timer.Outcome{Kind: timer.Fail, Status: 404, Error: timer.ErrStatus}, timer.Call{Status: 404, Error: timer.ErrStatus}
	case !ok:
		v, c = timer.Outcome{Kind: timer.TryAgain, Status: 500, Error: timer.ErrStatus}, timer.Call{Status: 500, Error: timer.ErrStatus}
	}
	d.outcome = timer.Complete(&d.claim, v, c, policy, w.now, w.rng.Float64())
	d.stage = resolving
}
