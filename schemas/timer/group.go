package timer

import (
	"regexp"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Group holds timers of one purpose, with the settings that they share.
type Group struct {
	Topic string `json:"topic"`
	Name  string `json:"name"`
	// Slots is frozen with the group: a timer's subject hangs on it.
	Slots     int       `json:"slots"`
	CreatedAt time.Time `json:"created_at"`
	// Timeout of a call; 0: DefaultTimeout.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Retry is the policy of timers that bring none; nil: a single attempt.
	Retry *Policy `json:"retry,omitempty"`
	// AllowHosts are the hosts that may be called: exact names, or *.example.com. Empty: all.
	AllowHosts []string `json:"allow_hosts,omitempty"`
	// SecretRef names the operator's secret that signs callbacks; empty: no signature.
	SecretRef string `json:"secret_ref,omitempty"`
	// MaxConcurrent bounds the group's calls at once in a dispatcher, MaxPerSecond how many begin in a
	// second there; 0: no bound of the group's own.
	MaxConcurrent int `json:"max_concurrent,omitempty"`
	MaxPerSecond  int `json:"max_per_second,omitempty"`
	// MaxPending bounds the group's timers that are not over; 0: no bound of the group's own.
	MaxPending int `json:"max_pending,omitempty"`
	// MaxBytes bounds what the group's timers hold of TIMERS; 0: as much as is free.
	MaxBytes int64 `json:"max_bytes,omitempty"`
	// Paused: nothing is called; what falls due meanwhile is called once the group is resumed.
	Paused bool `json:"paused,omitempty"`
	// Answer is AnswerStatus (also empty) or AnswerJSON.
	Answer string `json:"answer,omitempty"`
	// KeepDetail keeps the first DetailBytes of an answer in the history.
	KeepDetail bool `json:"keep_detail,omitempty"`
}

// DetailBytes is how much of an answer a group may keep.
const DetailBytes = 200

var secretRule = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)

// SecretName reports whether a group can name such a secret.
func SecretName(name string) bool { return secretRule.MatchString(name) }

// Validate refuses a group whose settings cannot be.
func (g *Group) Validate() error {
	if err := schemas.ValidateTimerGroup(g.Name); err != nil {
		return refuse(CodeGroup, "%v", err)
	}
	if err := schemas.ValidateTimerSlots(g.Slots); err != nil {
		return refuse(CodeSlots, "%v", err)
	}
	if g.Timeout < 0 || g.Timeout > MaxTimeout {
		return refuse(CodeTimeout, "the timeout is %s; expected more than 0 and at most %s", g.Timeout, MaxTimeout)
	}
	if g.MaxConcurrent < 0 || g.MaxPerSecond < 0 || g.MaxPending < 0 || g.MaxBytes < 0 {
		return refuse(CodeGroup, "max_concurrent, max_per_second, max_pending and max_bytes must not be negative")
	}
	if g.SecretRef != "" && !SecretName(g.SecretRef) {
		return refuse(CodeSecret, "secret %q must match [a-z0-9_-]{1,63}", g.SecretRef)
	}
	if !slices.Contains([]string{"", AnswerJSON, AnswerStatus}, g.Answer) {
		return refuse(CodeGroup, "answer is %q; expected %s or %s", g.Answer, AnswerJSON, AnswerStatus)
	}
	if g.Retry != nil {
		if err := g.Retry.Validate(); err != nil {
			return err
		}
	}
	return CheckAllowHosts(g.AllowHosts)
}

// Key returns where a timer of the group lives. It refuses an id that cannot be.
func (g *Group) Key(id string, lanes int) (schemas.TimerKey, error) {
	if err := schemas.ValidateTimerID(id); err != nil {
		code := CodeID
		if len(id) > schemas.MaxTimerIDBytes {
			code = CodeIDSize
		}
		return schemas.TimerKey{}, refuse(code, "%v", err)
	}
	return schemas.NewTimerKey(g.Topic, g.Name, id, g.Slots, lanes), nil
}

// Policy returns the policy that rules a timer of the group; nil: a single attempt.
func (g *Group) Policy(s *Spec) *Policy {
	if s.Retry != nil {
		return s.Retry
	}
	return g.Retry
}

// TimeoutOf returns how long a call of the spec may take.
func (g *Group) TimeoutOf(s *Spec) time.Duration {
	for _, d := range []time.Duration{s.Timeout, g.Timeout} {
		if d > 0 {
			return min(d, MaxTimeout)
		}
	}
	return DefaultTimeout
}
