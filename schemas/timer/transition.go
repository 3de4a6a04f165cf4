package timer

import (
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// The functions here are the transitions of a timer: from the record that is last, nil for none, to
// the record that is to follow it. They change nothing that they are given.

// Draft is what a creation asks for.
type Draft struct {
	Spec Spec
	User string
	Due  int64
	// NotBefore is the due time instead where Due is less: it passed since it was asked for, and with a small
	// MaxLateness the timer would fail without a call.
	NotBefore int64
	Life      schemas.ID
	// Replace allows another timer of the id to be replaced.
	Replace bool
	// Moved: a timer of the id that is there, over or not, is this one if it says the same.
	Moved bool
}

// Create begins a timer. same is true where the timer that exists says the same already: next is that
// one, and nothing is to be written. prev must have its spec.
func Create(key schemas.TimerKey, prev *Record, n Draft, now int64) (next Record, same bool, err error) {
	due := max(n.Due, n.NotBefore)
	next = Record{
		Key: key, Op: Created, Changed: now, CreatedAt: now, Life: n.Life, Revision: 1,
		Due: due, AskedDue: due, Spec: &n.Spec, Host: n.Spec.Host(), User: n.User,
	}
	if prev == nil {
		return next, false, nil
	}
	if n.Moved && prev.AskedDue >= n.Due && prev.Spec != nil && prev.Spec.Equal(&n.Spec) && prev.User == n.User {
		return *prev, true, nil
	}
	if prev.State().Over() { // a life begins
		next.Changed = schemas.ChangedAfter(prev.Changed, now)
		return next, false, nil
	}
	sameTime := prev.AskedDue == n.Due || prev.AskedDue == due || n.Spec.After != 0 && prev.Spec != nil && n.Spec.After == prev.Spec.After && !n.Replace
	if prev.Spec != nil && prev.Spec.Equal(&n.Spec) && prev.User == n.User && sameTime {
		return *prev, true, nil
	}
	if !n.Replace {
		return next, false, refuse(CodeExists, "%s: timer %q exists with another content; pass replace, or update it", key.Group, key.ID)
	}
	if prev.State() == StateFiring {
		return next, false, firing(prev)
	}
	next = prev.follow(Updated, now)
	next.Revision, next.Attempt, next.First, next.SpecSeq = prev.Revision+1, 0, 0, 0
	next.Due, next.Spec, next.Host, next.User = due, &n.Spec, n.Spec.Host(), n.User
	return next, false, nil
}

// Change is what an update asks for; nil fields stay.
type Change struct {
	Due  *int64
	Spec *Spec
}

// Bounds of a page of timers: DefaultPage is what one has that is not told.
const (
	DefaultPage = 500
	MaxPage     = 1000
)

// AnyRevision is the expectation that fits every revision.
const AnyRevision = 0

// Update changes a pending timer and begins a revision with all attempts left. expect is the revision it
// must have, or AnyRevision. prev must have its spec, which the record holds again.
func Update(prev *Record, c Change, expect, now int64) (Record, error) {
	if err := pending(prev, expect); err != nil {
		return Record{}, err
	}
	next := prev.follow(Updated, now)
	next.Revision, next.Attempt, next.First, next.SpecSeq, next.Spec = prev.Revision+1, 0, 0, 0, prev.Spec
	if c.Due != nil {
		next.Due = *c.Due
	}
	if c.Spec != nil {
		next.Spec, next.Host = c.Spec, c.Spec.Host()
	}
	if c.Due != nil && next.Spec != nil && next.Spec.After != 0 { // it is due at another time than that
		s := *next.Spec
		s.After, next.Spec = 0, &s
	}
	return next, nil
}

// Delete cancels a timer. One that is firing gets no more attempts, but the call under way may still
// succeed: inFlight.
func Delete(prev *Record, expect, now int64) (next Record, inFlight bool, err error) {
	if prev == nil || prev.State().Over() {
		return next, false, notFound(prev)
	}
	if expect != AnyRevision && prev.Revision != expect {
		return next, false, otherRevision(prev, expect)
	}
	return prev.follow(Cancelled, now), prev.State() == StateFiring, nil
}

// Again makes a failed timer pending, due now, with all attempts left. prev must have its spec, which the
// record holds again: the cleaner takes out a timer that is over with all its records.
func Again(prev *Record, now int64) (Record, error) {
	if prev == nil {
		return Record{}, notFound(prev)
	}
	if prev.State() != StateFailed {
		return Record{}, refuse(CodeNotFailed, "timer %q is %s; only a failed one can be retried", prev.Key.ID, prev.State())
	}
	if prev.Spec == nil {
		return Record{}, refuse(CodeNotFound, "the spec of timer %q is gone; create it again", prev.Key.ID)
	}
	next := prev.follow(Rescheduled, now)
	next.Revision, next.Attempt, next.First, next.Due = prev.Revision+1, 0, 0, now
	next.SpecSeq, next.Spec = 0, prev.Spec
	return next, nil
}

// Restore makes a timer pending as it was, after the front lost what was. One that was firing is due now, and its
// attempt is made again under the same number. was must have its spec, which the record holds again.
func Restore(was *Record, now int64) Record {
	next := was.follow(Restored, now)
	next.SpecSeq, next.Spec = 0, was.Spec
	if was.State() == StateFiring {
		next.Attempt, next.Due = max(0, was.Attempt-1), now
	}
	return next
}

// Rewrite puts a record again, with its spec: one that is over as it is, and another as Restore does.
func Rewrite(was *Record, now int64) Record {
	if !was.State().Over() {
		return Restore(was, now)
	}
	next := was.follow(was.Op, now)
	next.Call, next.SpecSeq, next.Spec = was.Call, 0, was.Spec
	return next
}

// Claim begins an attempt. A pending timer begins its next one. One that is firing was abandoned by its
// owner: its attempt is claimed again under the same number.
func Claim(prev *Record, owner, claim string, now int64) Record {
	next := prev.follow(Firing, now)
	next.Owner, next.Claim = owner, claim
	if prev.State() == StatePending {
		next.Attempt++
	}
	if next.First == 0 {
		next.First = now
	}
	next.Call.Late = time.Duration(max(0, now-next.Due))
	return next
}

// TooLate reports whether an attempt that would begin now is later than the spec allows.
func TooLate(prev *Record, s *Spec, now int64) bool {
	return s.MaxLateness > 0 && now-prev.Due > int64(s.MaxLateness)
}

// ErrTooLate is the Call.Error of a timer that failed because of its MaxLateness.
const ErrTooLate = "too-late"

// FailTooLate ends a pending timer without a call.
func FailTooLate(prev *Record, now int64) Record {
	next := prev.follow(Failed, now)
	next.Call = Call{Error: ErrTooLate, Late: time.Duration(now - prev.Due)}
	return next
}

// Complete ends the attempt that claimed describes. p is the timer's policy, nil for a single attempt; u is
// drawn evenly from [0, 1).
func Complete(claimed *Record, v Outcome, call Call, p *Policy, now int64, u float64) Record {
	call.Late = claimed.Call.Late
	next := claimed.follow(Failed, now)
	switch v.Kind {
	case Success:
		next.Op = Done
	case Later:
		next.Op = Rescheduled
		next.Revision, next.Attempt, next.First = claimed.Revision+1, 0, 0
		next.Due = max(v.Next, now)
	case TryAgain:
		if p == nil {
			break
		}
		if due, again := p.Next(claimed.Attempt, claimed.First, now, v.RetryAfter, u); again && p.mayPass(v.Status) {
			next.Op, next.Due = Retry, due
		}
	}
	next.Call = call
	return next
}

// pending refuses what is not pending in the expected revision.
func pending(prev *Record, expect int64) error {
	switch {
	case prev == nil || prev.State().Over():
		return notFound(prev)
	case expect != AnyRevision && prev.Revision != expect:
		return otherRevision(prev, expect)
	case prev.State() == StateFiring:
		return firing(prev)
	}
	return nil
}

func notFound(prev *Record) error {
	if prev == nil {
		return refuse(CodeNotFound, "no such timer")
	}
	return refuse(CodeNotFound, "timer %q of group %q is over: %s", prev.Key.ID, prev.Key.Group, prev.State())
}

func otherRevision(prev *Record, expect int64) error {
	return refuse(CodeRevision, "timer %q has revision %d, expected %d; read it again", prev.Key.ID, prev.Revision, expect)
}

func firing(prev *Record) error {
	return refuse(CodeFiring, "timer %q is being called since %s, due at %s; try again once the call has ended", prev.Key.ID,
		time.Unix(0, prev.Changed).UTC().Format(time.RFC3339Nano), time.Unix(0, prev.Due).UTC().Format(time.RFC3339Nano))
}
