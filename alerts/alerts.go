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
	"github.com/almanac-events/almanac/internal/alerts/events"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// Alerts declares rules and reads alerts. It is safe for concurrent use.
type Alerts struct {
	reg    *registry.Registry
	reader *query.Reader
}

// New makes Alerts over a registry, and a reader of events for List and History.
func New(reg *registry.Registry, reader *query.Reader) *Alerts { return &Alerts{reg, reader} }

// Groups returns the groups of rules, by name.
func (a *Alerts) Groups(ctx context.Context) ([]Group, error) { return Stored(ctx, a.reg) }

// Stored reads the groups of a registry, by name.
func Stored(ctx context.Context, reg *registry.Registry) ([]Group, error) {
	entries, err := reg.AlertRules(ctx)
	if err != nil {
		return nil, err
	}
	return groupsOf(entries)
}

func groupsOf(entries []registry.AlertRules) (out []Group, err error) {
	for i := range entries {
		var g Group
		if err := json.Unmarshal(entries[i].Rules, &g); err != nil {
			return nil, fmt.Errorf("alerts: the rules of group %q are not readable: %w", entries[i].Group, err)
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Check refuses groups whose topics, filters or fields are not there. What is asked of all rules together, it asks of
// those that are declared and these.
func (a *Alerts) Check(ctx context.Context, groups []Group) error {
	live, err := a.Groups(ctx)
	if err != nil {
		return err
	}
	known := map[string]schemas.Topic{}
	for i := range groups {
		g := &groups[i]
		if err := g.Validate(); err != nil {
			return err
		}
		for j := range g.Rules {
			r := &g.Rules[j]
			t, ok := known[r.Topic]
			if !ok {
				if t, err = a.reg.Topic(ctx, r.Topic); err != nil {
					return fmt.Errorf("group %q, rule %q: %w", g.Name, r.Title(), err)
				}
				known[r.Topic] = t
			}
			if _, err := r.Compile(&t); err != nil {
				return g.refuse(r, "%v", err)
			}
		}
	}
	return within(live, groups)
}

// within refuses groups that are beyond the bounds together with those that are declared and of other names.
func within(live, groups []Group) error {
	all := map[string]*Group{}
	for _, some := range [][]Group{live, groups} {
		for i := range some {
			all[some[i].Name] = &some[i]
		}
	}
	rules, asked, often, topics := 0, 0, 0.0, map[string]bool{}
	for _, g := range all {
		rules += len(g.Rules)
		for i := range g.Rules {
			topics[g.Rules[i].Topic] = true
			if r := &g.Rules[i]; r.Asked() {
				asked, often = asked+1, often+float64(r.Asks())*float64(time.Minute)/float64(r.Interval)
			}
		}
	}
	if err := oneSecret(all); err != nil {
		return err
	}
	for _, bound := range []struct {
		what      string
		n, atMost int
	}{
		{"groups of rules", len(all), MaxGroups}, {"rules", rules, MaxRules}, {"topics with rules", len(topics), MaxTopics},
		{"rules over expressions and meters", asked, MaxAsked}, {"evaluations of them in a minute (give them a longer interval)", int(often), MaxAskedMinute},
	} {
		if bound.n > bound.atMost {
			return fmt.Errorf("%w: %w: these would be %d %s; the limit is %d", schemas.ErrRequest, ErrRule, bound.n, bound.what, bound.atMost)
		}
	}
	return nil
}

// oneSecret refuses a receiver that several groups have with secrets that differ: its calls are signed by one.
func oneSecret(all map[string]*Group) error {
	type said struct{ group, secret string }
	first := map[string]said{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, r := range all[name].Receivers {
			f, ok := first[r.Name]
			switch {
			case !ok:
				first[r.Name] = said{name, r.Secret}
			case f.secret != r.Secret:
				return fmt.Errorf("%w: %w: receiver %q has the secret %q in group %q and %q in group %q: calls of one name are signed alike; give it another name in one of them",
					schemas.ErrRequest, ErrRule, r.Name, f.secret, f.group, r.Secret, name)
			}
		}
	}
	return nil
}

// Apply declares groups of rules, all or none: each takes the place of the group of its name. The first one makes the topics of alerts.
func (a *Alerts) Apply(ctx context.Context, groups []Group) error {
	if err := a.Check(ctx, groups); err != nil {
		return err
	}
	switch t, err := a.reg.Topic(ctx, schemas.TopicAlerts); {
	case errors.Is(err, schemas.ErrUnknownTopic):
		if _, _, err := a.reg.Apply(ctx, schemas.NewTopicOf(kinds.Audit, schemas.TopicAlerts), false); err != nil {
			return err
		}
	case err != nil:
		return err
	case t.Kind != kinds.Audit:
		return fmt.Errorf("%w: the topic %s is of kind %s, and alerts need one of kind %s under that name: move its events elsewhere (`almanac replay --into`) and remove it", schemas.ErrRequest, t.Name, t.Kind, kinds.Audit)
	}
	entries := make([]registry.AlertRules, 0, len(groups))
	for i := range groups {
		g := &groups[i]
		for _, r := range g.Receivers {
			_, _, err := timers.ApplyGroup(ctx, a.reg, schemas.TopicAlertCalls, r.Name, func(t *timer.Group) error {
				t.SecretRef, t.Retry = r.Secret, retries()
				return nil
			})
			if err != nil {
				return fmt.Errorf("receiver %q: %w", r.Name, err)
			}
		}
		text, err := json.Marshal(g)
		if err != nil {
			return err
		}
		entries = append(entries, registry.AlertRules{Group: g.Name, Rules: text})
	}
	return a.reg.SaveAlertRules(ctx, entries, func(stored []registry.AlertRules) error {
		live, err := groupsOf(stored)
		if err != nil {
			return err
		}
		return within(live, groups)
	})
}

// retries is how a notification is called again: after some seconds at first, for a day. An alert that ended long ago
// need not be told.
func retries() *timer.Policy {
	return &timer.Policy{Attempts: timer.MaxAttempts, Initial: 5 * time.Second, MaxInterval: 2 * time.Minute, MaxDuration: 24 * time.Hour}
}

// Remove removes a group of rules: its alerts end. ErrUnknownGroup where there is none.
func (a *Alerts) Remove(ctx context.Context, group string) error {
	err := a.reg.ForgetAlertRules(ctx, group)
	if errors.Is(err, registry.ErrNotFound) {
		return fmt.Errorf("%w: %w: %q", schemas.ErrRequest, ErrUnknownGroup, group)
	}
	return err
}

// AlertState is the state of an alert: inactive, pending or firing.
type AlertState = decide.State

// AlertStates are all of them, the worst last.
var AlertStates = []AlertState{decide.Inactive, decide.Pending, decide.Firing}

// Alert is an alert as it is, or as it became at a time.
type Alert struct {
	State AlertState `json:"state"`
	// At is when it became so, by the time of acceptance, and Since when its condition was first met.
	At    time.Time `json:"at"`
	Since time.Time `json:"since"`
	Group string    `json:"group"`
	Rule  string    `json:"alert"`
	Topic string    `json:"topic"`
	By    string    `json:"by,omitempty"`
	Value string    `json:"value,omitempty"`
	// Count is what the condition was asked of.
	Count       string            `json:"count"`
	Reason      string            `json:"reason,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	// Key names the transition: its notifications have it as their id.
	Key string `json:"key"`
}

func alertOf(e *events.Read) Alert {
	group, rule := e.Names()
	since, _ := time.Parse(time.RFC3339Nano, e.Attrs[events.AttrSince])
	return Alert{
		State: e.State, At: e.Time, Since: since, Group: group, Rule: rule, Topic: e.Attrs[events.AttrTopic], By: e.Attrs[events.AttrBy], Value: e.Attrs[events.AttrValue],
		Count: e.Attrs[events.AttrCount], Reason: e.Attrs[events.AttrReason], Labels: e.Labels(), Annotations: e.Annotations(), Key: e.Key,
	}
}

// Decided is how far the rules of a topic are evaluated.
type Decided struct {
	Topic string    `json:"topic"`
	Rules int       `json:"rules"`
	UpTo  time.Time `json:"evaluated_up_to,omitzero"`
}

// Overview is which alerts there are, and how far each topic is evaluated.
type Overview struct {
	Alerts []Alert   `json:"alerts"`
	Topics []Decided `json:"topics"`
	// Recording are the rules that record.
	Recording []Recording `json:"recording"`
}

// Recording is how a rule that records was evaluated last: at which instant, how many series it wrote, and why it did not.
type Recording struct {
	Group  string    `json:"group"`
	Record string    `json:"record"`
	Topic  string    `json:"topic"`
	At     time.Time `json:"at,omitzero"`
	Series int       `json:"series"`
	Error  string    `json:"error,omitempty"`
}

// recording are the rules of groups that record, by what is known of their topics.
func recording(groups []Group, states map[string]decide.Topic) []Recording {
	out := []Recording{}
	for i := range groups {
		for j := range groups[i].Rules {
			r := &groups[i].Rules[j]
			if r.Record == "" {
				continue
			}
			upTo, last := r.evaluated(groups[i].Name, states[r.Topic])
			out = append(out, Recording{Group: groups[i].Name, Record: r.Record, Topic: r.Topic, At: upTo, Series: last.Recorded, Error: last.Error})
		}
	}
	return out
}

// List reads the alerts that are pending or firing.
func (a *Alerts) List(ctx context.Context) (*Overview, error) {
	groups, err := a.Groups(ctx)
	if err != nil {
		return nil, err
	}
	topics := map[string]*Decided{}
	of := func(topic string) *Decided {
		if topics[topic] == nil {
			topics[topic] = &Decided{Topic: topic}
		}
		return topics[topic]
	}
	for i := range groups {
		for j := range groups[i].Rules {
			of(groups[i].Rules[j].Topic).Rules++
		}
	}
	jobs, err := a.reg.Jobs(ctx, schemas.JobAlerts)
	if err != nil {
		return nil, err
	}
	var named []decide.Named
	states := map[string]decide.Topic{}
	for i := range jobs {
		s, err := stateOf(&jobs[i])
		if err != nil {
			return nil, err
		}
		named, states[jobs[i].ID] = append(named, s.Alerts...), s
		if topics[jobs[i].ID] != nil || len(s.Alerts) > 0 {
			of(jobs[i].ID).UpTo = time.Unix(0, s.Decided).UTC()
		}
	}
	read, err := events.ByKey(ctx, a.reader, named)
	if err != nil {
		return nil, err
	}
	out := &Overview{Alerts: []Alert{}, Topics: []Decided{}, Recording: recording(groups, states)}
	for i := range named {
		if e, ok := read[named[i].Key]; ok {
			out.Alerts = append(out.Alerts, alertOf(&e))
		}
	}
	slices.SortFunc(out.Alerts, func(a, b Alert) int { return b.At.Compare(a.At) })
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		out.Topics = append(out.Topics, *topics[name])
	}
	return out, nil
}

// Past asks for transitions.
type Past struct {
	From, To time.Time
	// Where selects among the events of alerts.
	Where  string
	Limit  int
	Cursor string
}

// Page is transitions, the newest first.
type Page struct {
	Alerts []Alert `json:"alerts"`
	Cursor string  `json:"cursor,omitempty"`
}

// History reads transitions of alerts, the newest first.
func (a *Alerts) History(ctx context.Context, p Past) (*Page, error) {
	page, err := a.reader.Query(ctx, query.Request{Topic: schemas.TopicAlerts, From: p.From, To: p.To, Where: p.Where, Limit: p.Limit, Cursor: p.Cursor})
	if errors.Is(err, schemas.ErrUnknownTopic) { // no rule was ever declared
		return &Page{Alerts: []Alert{}}, nil
	}
	if err != nil {
		return nil, err
	}
	out, seen := &Page{Alerts: []Alert{}, Cursor: page.Cursor}, map[string]bool{}
	for _, line := range page.Events {
		e, err := events.Parse(line)
		if err != nil {
			return nil, err
		}
		if !seen[e.Key] { // one that was written again after a crash is the same
			out.Alerts, seen[e.Key] = append(out.Alerts, alertOf(&e)), true
		}
	}
	return out, nil
}

// Trial is what rules would have said of what came before.
type Trial struct {
	// Alerts are the transitions, the earliest first.
	Alerts []Alert `json:"alerts"`
	// Recorded are the series that rules would have recorded.
	Recorded []Recorded `json:"recorded"`
	// Left says what was left out, each once.
	Left []string `json:"left_out"`
}

// Recorded is a series that a rule would have recorded: how many samples, and the last of them.
type Recorded struct {
	Group  string            `json:"group"`
	Record string            `json:"record"`
	Topic  string            `json:"topic"`
	Labels map[string]string `json:"labels"`
	// Samples counts them, and At and Value are of the last.
	Samples int       `json:"samples"`
	At      time.Time `json:"at"`
	Value   string    `json:"value"`
}

// Tried is transitions that were made by trying rules, as History has those that were committed.
func Tried(made []decide.Notice) []Alert {
	out := []Alert{}
	for i := range made {
		n := &made[i]
		out = append(out, Alert{
			State: n.To, At: time.Unix(0, n.At).UTC(), Since: time.Unix(0, n.Since).UTC(), Group: n.Group, Rule: n.Rule, Topic: n.Topic, By: n.By, Value: n.Value,
			Count: fmt.Sprint(n.Count), Labels: n.Labels, Annotations: n.Annotations, Key: n.Key,
		})
	}
	return out
}
