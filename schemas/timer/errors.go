package timer

import (
	"errors"
	"fmt"
)

// Code names a refusal for programs.
type Code string

// The codes of refusals.
const (
	CodeGroup        Code = "bad-group"
	CodeUnknownGroup Code = "unknown-group"
	CodeID           Code = "bad-id"
	CodeIDSize       Code = "id-too-long"
	CodeSlots        Code = "bad-slots"
	CodeGroupChange  Code = "group-change"
	CodeDueMissing   Code = "due-missing"
	CodeDueFormat    Code = "due-not-a-time"
	CodeDuePast      Code = "due-past"
	CodeDueAhead     Code = "due-too-far-ahead"
	CodeURL          Code = "bad-url"
	CodeURLSize      Code = "url-too-long"
	CodeURLScheme    Code = "url-scheme"
	CodeURLUser      Code = "url-with-user"
	CodeHost         Code = "host-not-allowed"
	CodeAllowHosts   Code = "bad-allow-hosts"
	CodePayload      Code = "payload-not-json"
	CodePayloadSize  Code = "payload-too-large"
	CodeTimeout      Code = "bad-timeout"
	CodeLateness     Code = "bad-max-lateness"
	CodeAttempts     Code = "bad-attempts"
	CodeInterval     Code = "bad-interval"
	CodeMultiplier   Code = "bad-multiplier"
	CodeDuration     Code = "bad-max-duration"
	CodeRetryOn      Code = "bad-retry-on"
	CodeUser         Code = "bad-user"
	CodeSecret       Code = "bad-secret"
	CodeExists       Code = "exists"
	CodeNotFound     Code = "not-found"
	CodeFiring       Code = "firing"
	CodeOver         Code = "over"
	CodeRevision     Code = "revision"
	CodeNotFailed    Code = "not-failed"
	CodeGroupFull    Code = "group-full"
)

// What a refusal is, by errors.Is.
var (
	// ErrInput: what was given cannot be scheduled. Nothing was written.
	ErrInput = errors.New("bad timer")
	// ErrExists: another timer has the id.
	ErrExists = errors.New("the timer exists")
	// ErrNotFound: no such timer, or it is over.
	ErrNotFound = errors.New("no such timer")
	// ErrFiring: the timer is being called at this moment.
	ErrFiring = errors.New("the timer is firing")
	// ErrRevision: the timer has another revision than expected.
	ErrRevision = errors.New("the timer has another revision")
	// ErrState: the timer's state does not allow it.
	ErrState = errors.New("the timer's state does not allow it")
	// ErrGroupFull: the group has its max_pending timers. Nothing was written.
	ErrGroupFull = errors.New("the group is full")
)

// Refusal says why something was not done.
type Refusal struct {
	Code Code
	Text string
}

// Error returns the text and the code.
func (r *Refusal) Error() string { return fmt.Sprintf("%s (%s)", r.Text, r.Code) }

// Unwrap returns the sentinel of the code.
func (r *Refusal) Unwrap() error {
	switch r.Code {
	case CodeExists:
		return ErrExists
	case CodeNotFound, CodeUnknownGroup:
		return ErrNotFound
	case CodeFiring:
		return ErrFiring
	case CodeRevision:
		return ErrRevision
	case CodeOver, CodeNotFailed:
		return ErrState
	case CodeGroupFull:
		return ErrGroupFull
	}
	return ErrInput
}
