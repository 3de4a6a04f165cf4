package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// LateAfter is how long a rule may not be evaluated until that is wrong. A process that takes over reads the frames of
// the longest window first.
const LateAfter = 2 * time.Minute

// GroupStatus is a group of rules with how they are evaluated.
type GroupStatus struct {
	Group
	// Declared is when it was applied last, by the clock of who did.
	Declared time.Time
	Rules    []RuleStatus
}

// RuleStatus is a rule with how it is evaluated.
type RuleStatus struct {
	Rule
	// UpTo is how far it is evaluated; the zero time: it is not yet.
	UpTo time.Time
	// Took is how long its last evaluation took, and Recorded how many series that wrote, where it records.
	Took     time.Duration
	Recorded int
	// Wrong says why it is not evaluated up to now; empty: it is, or has the time until then.
	Wrong string
	// Alerts are those that are pending or firing, where they were asked for.
	Alerts []Alert
}

// State is that of the rule's worst alert.
func (s *RuleStatus) State() AlertState {
	worst := decide.Inactive
	for i := range s.Alerts {
		worst = AlertStates[max(slices.Index(AlertStates, worst), slices.Index(AlertStates, s.Alerts[i].State))]
	}
	return worst
}

// Status reads how the rules are evaluated, and their alerts.
func (a *Alerts) Status(ctx context.Context) ([]GroupStatus, error) {
	out, err := a.Health(ctx)
	if err != nil {
		return nil, err
	}
	list, err := a.List(ctx)
	if err != nil {
		return nil, err
	}
	of := map[string][]Alert{}
	for i := range list.Alerts {
		name := list.Alerts[i].Group + "/" + list.Alerts[i].Rule
		of[name] = append(of[name], list.Alerts[i])
	}
	for i := range out {
		for j := range out[i].Rules {
			r := &out[i].Rules[j]
			r.Alerts = of[out[i].Name+"/"+r.Alert]
		}
	}
	return out, nil
}

// Health reads how the rules are evaluated, by the registry alone.
func (a *Alerts) Health(ctx context.Context) ([]GroupStatus, error) {
	entries, err := a.reg.AlertRules(ctx)
	if err != nil {
		return nil, err
	}
	declared := map[string]time.Time{}
	for i := range entries {
		declared[entries[i].Group] = entries[i].UpdatedAt
	}
	groups, err := groupsOf(entries)
	if err != nil {
		return nil, err
	}
	topics, err := a.reg.Topics(ctx)
	if err != nil {
		return nil, err
	}
	states, err := a.states(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	out := make([]GroupStatus, 0, len(groups))
	for i := range groups {
		g := &groups[i]
		s := GroupStatus{Group: *g, Declared: declared[g.Name]}
		for _, r := range g.Rules {
			upTo, last := r.evaluated(g.Name, states[r.Topic])
			s.Rules = append(s.Rules, RuleStatus{
				Rule: r, UpTo: upTo, Took: time.Duration(last.Took), Recorded: last.Recorded, Wrong: wrong(&r, topics, declared[g.Name], upTo, now, last.Error),
			})
		}
		out = append(out, s)
	}
	return out, nil
}

// states is what is known of each topic's alerts.
func (a *Alerts) states(ctx context.Context) (map[string]decide.Topic, error) {
	jobs, err := a.reg.Jobs(ctx, schemas.JobAlerts)
	if err != nil {
		return nil, err
	}
	out := map[string]decide.Topic{}
	for i := range jobs {
		if out[jobs[i].ID], err = stateOf(&jobs[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Ending reports whether a topic without rules still has alerts that are to end, or transitions that are to be told. The topic must stay for that.
func Ending(ctx context.Context, reg *registry.Registry, topic string) (bool, error) {
	job, err := reg.Job(ctx, schemas.JobAlerts, topic)
	if errors.Is(err, registry.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s, err := stateOf(&job)
	return err == nil && len(s.Alerts)+len(s.Outbox) > 0, nil // what is not readable is forgotten
}

// evaluated is up to when a rule is evaluated, and how it was at its last instant, where its values are asked for.
func (r *Rule) evaluated(group string, s decide.Topic) (upTo time.Time, last decide.Asked) {
	at := s.Decided
	if r.Asked() {
		last = s.Asked[r.AskedKey(group)]
		at = last.At
	}
	if at > 0 {
		upTo = time.Unix(0, at).UTC()
	}
	return upTo, last
}

// stateOf reads what is known of a topic's alerts.
func stateOf(j *registry.Job) (s decide.Topic, err error) {
	if err := json.Unmarshal(j.State, &s); err != nil {
		return s, fmt.Errorf("alerts: what is known of topic %s is not readable: %w", j.ID, err)
	}
	return s, nil
}

// wrong says why a rule is not evaluated up to now.
func wrong(r *Rule, topics []schemas.Topic, declared, upTo, now time.Time, failed string) string {
	i := slices.IndexFunc(topics, func(t schemas.Topic) bool { return t.Name == r.Topic })
	if i < 0 {
		return fmt.Sprintf("there is no topic %q: declare it, or take the rule out of its group", r.Topic)
	}
	if _, err := r.Compile(&topics[i]); err != nil {
		return fmt.Sprintf("topic %q is no longer what the rule was made for: %v", r.Topic, err)
	}
	if failed != "" && r.Record != "" {
		return fmt.Sprintf("at %s it could not be evaluated, and it recorded nothing or not all: %s", upTo.Format(time.RFC3339), failed)
	}
	if failed != "" {
		return fmt.Sprintf("at %s it could not be evaluated, and its alerts stay as they are: %s", upTo.Format(time.RFC3339), failed)
	}
	late := LateAfter + time.Duration(r.Interval)
	const remedy = "see that a sink runs, whose log says what stops it, and that `almanac lag` shows no events that wait for a router"
	switch {
	case upTo.IsZero() && now.Sub(declared) > late:
		return fmt.Sprintf("it is not evaluated yet, %s after it was declared: %s", now.Sub(declared).Round(time.Second), remedy)
	case !upTo.IsZero() && now.Sub(upTo) > late && now.Sub(declared) > late:
		return fmt.Sprintf("it is evaluated up to %s, and that was %s ago: %s", upTo.Format(time.RFC3339), now.Sub(upTo).Round(time.Second), remedy)
	}
	return ""
}

// Query is what the rule asks, on one line.
func (r *Rule) Query() string {
	if r.Expr != "" {
		return r.Expr
	}
	var b strings.Builder
	if r.Meter != "" {
		b.WriteString(r.Measure + " of " + r.Meter)
	} else {
		b.WriteString("count")
	}
	if r.By != "" {
		b.WriteString(" by (" + r.By + ")")
	}
	b.WriteString(" (" + r.Topic)
	if r.Where != "" {
		b.WriteString(" where " + r.Where)
	}
	if r.Span() > 0 {
		b.WriteString(" within " + r.Span().String())
	}
	b.WriteString(")")
	switch {
	case r.Silence > 0:
		b.WriteString(" == 0")
	case r.unusual():
		fmt.Fprintf(&b, " more than %v deviations from the median of %d days", r.Unusual, r.Days)
		if r.Least > 0 {
			fmt.Fprintf(&b, ", by %v at least", r.Least)
		}
	default:
		b.WriteString(" " + strings.TrimSpace(r.Condition))
	}
	return b.String()
}

// OfTopic leaves the rules of one topic, and the groups that have some. ErrUnknownTopic where there is no such topic.
func (a *Alerts) OfTopic(ctx context.Context, groups []GroupStatus, topic string) ([]GroupStatus, error) {
	_, err := a.reg.Topic(ctx, topic)
	if err != nil && !(errors.Is(err, schemas.ErrUnknownTopic) && watched(groups, topic)) {
		return nil, err
	}
	out := groups[:0:0]
	for _, g := range groups {
		g.Rules = slices.DeleteFunc(slices.Clone(g.Rules), func(r RuleStatus) bool { return r.Topic != topic })
		if len(g.Rules) > 0 {
			out = append(out, g)
		}
	}
	return out, nil
}

func watched(groups []GroupStatus, topic string) bool {
	return slices.ContainsFunc(groups, func(g GroupStatus) bool {
		return slices.ContainsFunc(g.Rules, func(r RuleStatus) bool { return r.Topic == topic })
	})
}

// TopicStatus is how the rules of a topic are evaluated.
type TopicStatus struct {
	Topic string
	// Rules are how many there are, and Wrong those that are not evaluated up to now.
	Rules, Wrong int
	// Pending and Firing count alerts.
	Pending, Firing int
	// UpTo is how far the rules are evaluated. Before they are the first time it is when they were declared.
	UpTo time.Time
}

// Topics reads how the rules of each topic are evaluated, by the registry alone.
func (a *Alerts) Topics(ctx context.Context) ([]TopicStatus, error) {
	groups, err := a.Health(ctx)
	if err != nil {
		return nil, err
	}
	jobs, err := a.reg.Jobs(ctx, schemas.JobAlerts)
	if err != nil {
		return nil, err
	}
	topics := map[string]*TopicStatus{}
	for i := range groups {
		for j := range groups[i].Rules {
			r := &groups[i].Rules[j]
			t := topics[r.Topic]
			if t == nil {
				t = &TopicStatus{Topic: r.Topic, UpTo: groups[i].Declared}
				topics[r.Topic] = t
			}
			if groups[i].Declared.Before(t.UpTo) {
				t.UpTo = groups[i].Declared
			}
			if t.Rules++; r.Wrong != "" {
				t.Wrong++
			}
		}
	}
	for i := range jobs {
		t := topics[jobs[i].ID]
		if t == nil {
			continue // its rules were removed, and its alerts end
		}
		s, err := stateOf(&jobs[i])
		if err != nil {
			return nil, err
		}
		if s.Decided > 0 { // also where rules that are asked for have their next instant ahead
			t.UpTo = time.Unix(0, s.Decided).UTC()
		}
		for j := range s.Alerts {
			if s.Alerts[j].State == decide.Firing {
				t.Firing++
			} else {
				t.Pending++
			}
		}
	}
	out := make([]TopicStatus, 0, len(topics))
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		out = append(out, *topics[name])
	}
	return out, nil
}
