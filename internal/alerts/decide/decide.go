package decide

import (
	"cmp"
	"slices"
	"time"
)

// Step is how far apart instants are.
const Step = time.Second

// Instant is the first instant at or after a time, in unix ns.
func Instant(ns int64) int64 { return (ns + int64(Step) - 1) / int64(Step) * int64(Step) }

// State of an alert.
type State string

// The states.
const (
	Inactive State = "inactive"
	Pending  State = "pending"
	Firing   State = "firing"
)

// Condition compares a value with a limit.
type Condition struct {
	Op    string // one of Ops
	Limit float64
}

// Ops are the comparisons of a condition.
var Ops = []string{">=", "<=", "==", "!=", ">", "<"}

// Met reports whether a value meets the condition.
func (c Condition) Met(v float64) bool {
	switch c.Op {
	case ">=":
		return v >= c.Limit
	case "<=":
		return v <= c.Limit
	case "==":
		return v == c.Limit
	case "!=":
		return v != c.Limit
	case ">":
		return v > c.Limit
	case "<":
		return v < c.Limit
	}
	return false
}

// Rule is what decides about a group's value.
type Rule struct {
	// Condition is of the count of a window.
	Condition Condition
	// Grouped: there is an alert for each group. One that has no events is a group only where it had some, or an alert.
	// Without, there is one alert, of the group "".
	Grouped bool
	// For is how long the condition must hold before the alert fires, Keep how long it may fail before
	// the alert ends.
	For, Keep time.Duration
}

// Alert is how an alert is. The zero value is an inactive one that never was another.
type Alert struct {
	State State `json:"state"`
	// Since is when the condition was first met, Met the last instant at which it was, At the last
	// transition; unix ns.
	Since int64 `json:"since"`
	Met   int64 `json:"met"`
	At    int64 `json:"at"`
}

// Until is the alert with times that are not after an instant: a clock may have been set back since. When one that fires began stays, for nothing
// goes by it any more.
func (a Alert) Until(at int64) Alert {
	if a.State == Pending {
		a.Since = min(a.Since, at)
	}
	a.Met, a.At = min(a.Met, at), min(a.At, at)
	return a
}

// Sample is the value of a group at an instant, and whether it meets the condition.
type Sample struct {
	Value float64
	Met   bool
}

// Transition is a change of an alert's state.
type Transition struct {
	Group    string
	From, To State
	// At is the instant at which it was made, Since when the condition was first met.
	At, Since int64
	Value     float64
}

// next is what becomes of an alert at an instant.
func (r Rule) next(a Alert, at int64, s Sample) Alert {
	was := cmp.Or(a.State, Inactive)
	a.State = was
	if at <= a.At {
		return a
	}
	switch {
	case s.Met && was == Inactive:
		a.Since, a.State = at, Pending
		if r.For <= 0 {
			a.State = Firing
		}
	case s.Met && was == Pending && at-a.Since >= int64(r.For):
		a.State = Firing
	case !s.Met && was == Pending, !s.Met && was == Firing && at-a.Met >= int64(r.Keep):
		a.State = Inactive
	}
	if s.Met {
		a.Met = max(a.Met, at)
	}
	if a.State != was {
		a.At = at
	}
	return a
}

// Decide returns the transitions of a rule's alerts at an instant, by group, and changes alerts to what
// they are then. samples are those of groups that have one; a group without one does not meet the
// condition, with the value 0. An alert that became inactive is kept until Forget, so that what is evaluated again finds it.
func (r Rule) Decide(at int64, samples map[string]Sample, alerts map[string]Alert) (made []Transition) {
	decide := func(group string, s Sample) {
		was := alerts[group]
		now := r.next(was, at, s)
		if now.State != cmp.Or(was.State, Inactive) {
			made = append(made, Transition{Group: group, From: cmp.Or(was.State, Inactive), To: now.State, At: at, Since: now.Since, Value: s.Value})
		}
		if now.State == Inactive && now.At == 0 {
			return // it never was another
		}
		alerts[group] = now
	}
	for group, s := range samples {
		decide(group, s)
	}
	for group := range alerts {
		if _, had := samples[group]; !had {
			decide(group, Sample{})
		}
	}
	slices.SortFunc(made, func(a, b Transition) int { return cmp.Compare(a.Group, b.Group) })
	return made
}

// Forget removes alerts that are inactive since before an instant: nothing before it is evaluated again.
func Forget(alerts map[string]Alert, before int64) {
	for group, a := range alerts {
		if a.State == Inactive && a.At < before {
			delete(alerts, group)
		}
	}
}

// Sample returns the samples of a rule at an instant, by what its series counts.
func (r Rule) Sample(s *Series, at int64, alerts map[string]Alert) map[string]Sample {
	var out map[string]Sample
	add := func(group string, n uint64) {
		if out == nil {
			out = map[string]Sample{}
		}
		out[group] = Sample{float64(n), r.Condition.Met(float64(n))}
	}
	if !r.Grouped {
		add("", 0)
	}
	for group := range alerts {
		add(group, 0)
	}
	s.Counts(at, add)
	return out
}
