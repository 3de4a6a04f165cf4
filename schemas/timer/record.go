package timer

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Op is what happened to a timer.
type Op string

// The transitions of a timer.
const (
	Created     Op = "created"
	Updated     Op = "updated"
	Firing      Op = "firing"
	Done        Op = "done"
	Failed      Op = "failed"
	Retry       Op = "retry"
	Rescheduled Op = "rescheduled"
	Cancelled   Op = "cancelled"
	// Restored: the front had lost it, and has it again from its history.
	Restored Op = "restored"
)

// State is what a timer waits for.
type State string

// The states of a timer.
const (
	StatePending   State = "pending"
	StateFiring    State = "firing"
	StateDone      State = "done"
	StateFailed    State = "failed"
	StateCancelled State = "cancelled"
)

// State returns the state that a transition leaves the timer in; empty for an unknown one.
func (o Op) State() State {
	switch o {
	case Created, Updated, Retry, Rescheduled, Restored:
		return StatePending
	case Firing:
		return StateFiring
	case Done:
		return StateDone
	case Failed:
		return StateFailed
	case Cancelled:
		return StateCancelled
	}
	return ""
}

// Over reports whether no call follows by itself.
func (s State) Over() bool { return s == StateDone || s == StateFailed || s == StateCancelled }

// Record is one transition of a timer, and the timer as it left it.
type Record struct {
	Key schemas.TimerKey
	Op  Op
	// Seq is the record's sequence in TIMERS; 0 before it is stored.
	Seq uint64
	// Last is the sequence of the last message of the subject where that is not a record: a write expects
	// it. 0: the record is the last one.
	Last uint64
	// Changed is the time of the transition, CreatedAt that of the creation, unix ns.
	Changed, CreatedAt int64
	Life               schemas.ID
	Revision           int64
	// Attempt is the number of the last attempt that began in this revision; 0 before the first.
	Attempt int64
	// Due is when the next attempt is to begin, or was to; unix ns.
	Due int64
	// First is when the first attempt of the revision began; 0 before it.
	First int64
	// Owner and Claim name the member that claimed the attempt, and the claim. Set while firing.
	Owner, Claim string
	// SpecSeq is the sequence of the record that holds the spec; 0: this one.
	SpecSeq uint64
	// Spec is set where the record holds it, or where it was read for it.
	Spec *Spec
	// AskedDue is the due time that the caller asked for with Spec; unix ns. Due moves on with each retry.
	// So Create compares a repeated request with this one. It is not stored.
	AskedDue int64
	// Host of the callback, with its port.
	Host string
	User string
	// Call is how an attempt ended; set on done, failed, retry and rescheduled.
	Call Call
}

// Call is how an attempt went.
type Call struct {
	// Status of the HTTP answer; 0 without one.
	Status int
	// Error is a word such as timeout or blocked-address; empty after a success.
	Error string
	// Detail is the beginning of the answer where the group keeps it, or the error's text.
	Detail string
	Took   time.Duration
	// Late is how long after its due time the attempt began.
	Late time.Duration
}

// Expect returns the sequence of the last message of the record's subject.
func (r *Record) Expect() uint64 { return max(r.Seq, r.Last) }

// State returns the timer's state.
func (r *Record) State() State { return r.Op.State() }

// SpecAt returns the sequence of the record that holds the spec.
func (r *Record) SpecAt() uint64 {
	if r.SpecSeq != 0 {
		return r.SpecSeq
	}
	return r.Seq
}

// CallKey names the attempt: the same for an attempt that is made again after a crash.
func (r *Record) CallKey() string {
	return fmt.Sprintf("%s-%d-%d", r.Life, r.Revision, r.Attempt)
}

// MessageID names the revision: the same for all its attempts, so that a receiver can tell a repetition.
func (r *Record) MessageID() string { return fmt.Sprintf("%s-%d", r.Life, r.Revision) }

// follow returns the record that comes after r, with nothing that belongs to a single transition.
func (r *Record) follow(op Op, now int64) Record {
	next := *r
	next.Op, next.Seq, next.Last, next.SpecSeq = op, 0, 0, r.SpecAt()
	next.Changed = schemas.ChangedAfter(r.Changed, now)
	next.Owner, next.Claim, next.Call, next.Spec = "", "", Call{}, nil
	return next
}
