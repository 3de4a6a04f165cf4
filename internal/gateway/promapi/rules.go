package promapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/schemas"
)

// file is what groups of rules say that they are of: clients sort them by it.
const file = "almanac"

// These have the names that Prometheus gives them.
type (
	ruleDiscovery struct {
		Groups []*ruleGroup `json:"groups"`
		Next   string       `json:"groupNextToken,omitempty"`
	}
	ruleGroup struct {
		Name           string    `json:"name"`
		File           string    `json:"file"`
		Rules          []any     `json:"rules"` // of both types
		Interval       float64   `json:"interval"`
		Limit          int       `json:"limit"`
		EvaluationTime float64   `json:"evaluationTime"`
		LastEvaluation time.Time `json:"lastEvaluation"`
	}
	alertingRule struct {
		State          alerts.AlertState `json:"state"`
		Name           string            `json:"name"`
		Query          string            `json:"query"`
		Duration       float64           `json:"duration"`
		KeepFiringFor  float64           `json:"keepFiringFor"`
		Labels         labels.Labels     `json:"labels"`
		Annotations    labels.Labels     `json:"annotations"`
		Alerts         []*activeAlert    `json:"alerts"`
		Health         string            `json:"health"`
		LastError      string            `json:"lastError,omitempty"`
		EvaluationTime float64           `json:"evaluationTime"`
		LastEvaluation time.Time         `json:"lastEvaluation"`
		Type           string            `json:"type"`
	}
	recordingRule struct {
		Name           string        `json:"name"`
		Query          string        `json:"query"`
		Labels         labels.Labels `json:"labels"`
		Health         string        `json:"health"`
		LastError      string        `json:"lastError,omitempty"`
		EvaluationTime float64       `json:"evaluationTime"`
		LastEvaluation time.Time     `json:"lastEvaluation"`
		Type           string        `json:"type"`
	}
	activeAlert struct {
		Labels      labels.Labels     `json:"labels"`
		Annotations labels.Labels     `json:"annotations"`
		State       alerts.AlertState `json:"state"`
		ActiveAt    *time.Time        `json:"activeAt,omitempty"`
		Value       string            `json:"value"`
	}
)

// wanted is which rules a request asks for.
type wanted struct {
	rules, groups, files []string
	matchers             [][]*labels.Matcher
	kind                 string // alert or record: the rules that do that; empty: all
	bare                 bool   // without alerts
	limit                int    // of groups; 0: all
	from                 string
}

func (a *API) wanted(r *http.Request) (w wanted, err error) {
	w = wanted{rules: r.Form["rule_name[]"], groups: r.Form["rule_group[]"], files: r.Form["file[]"], from: r.FormValue("group_next_token")}
	if w.matchers, err = a.cfg.Store.Parser().ParseMetricSelectors(r.Form["match[]"]); err != nil {
		return w, badParameter("match[]", err)
	}
	switch kind := strings.ToLower(r.FormValue("type")); kind {
	case "", "alert", "record":
		w.kind = kind
	default:
		return w, badData("invalid parameter %q: not supported value %q", "type", kind)
	}
	if text := strings.ToLower(r.FormValue("exclude_alerts")); text != "" {
		if w.bare, err = strconv.ParseBool(text); err != nil {
			return w, badData("invalid parameter %q: %q is neither true nor false", "exclude_alerts", text)
		}
	}
	text := r.FormValue("group_limit")
	switch {
	case text != "":
		if w.limit, err = strconv.Atoi(text); err != nil || w.limit <= 0 {
			return w, badData("invalid parameter %q: %q is not a whole number from 1", "group_limit", text)
		}
	case w.from != "":
		return w, badData("invalid parameter %q: group_limit needs to be present in order to paginate over the groups", "group_next_token")
	}
	return w, nil
}

// rules answers with the rules and their alerts.
func (a *API) rules(r *http.Request, topic string, reply func(answer) error) error {
	want, err := a.wanted(r)
	if err != nil {
		return err
	}
	groups, err := a.statusOf(r, topic)
	if err != nil {
		return err
	}
	out, err := want.of(groups)
	if err != nil {
		return err
	}
	return reply(answer{data: out})
}

// alerts answers with what is pending or firing.
func (a *API) alerts(r *http.Request, topic string, reply func(answer) error) error {
	groups, err := a.statusOf(r, topic)
	if err != nil {
		return err
	}
	all := []*activeAlert{}
	for i := range groups {
		for j := range groups[i].Rules {
			all = append(all, activeOf(&groups[i].Rules[j])...)
		}
	}
	return reply(answer{data: map[string]any{"alerts": all}})
}

// statusOf reads the rules of a topic; of all where it is empty.
func (a *API) statusOf(r *http.Request, topic string) ([]alerts.GroupStatus, error) {
	groups, err := a.cfg.Alerts.Status(r.Context())
	if err != nil || topic == "" {
		return groups, err
	}
	groups, err = a.cfg.Alerts.OfTopic(r.Context(), groups, topic)
	if errors.Is(err, schemas.ErrUnknownTopic) {
		return nil, &refusal{http.StatusNotFound, "not_found", err.Error() + ": GET /v1/topics lists them"}
	}
	return groups, err
}

// of is those of the groups that are asked for, in the order of their names.
func (w *wanted) of(groups []alerts.GroupStatus) (*ruleDiscovery, error) {
	out := &ruleDiscovery{Groups: []*ruleGroup{}}
	begun := w.from == ""
	asked := func(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }
	for i := range groups {
		g := &groups[i]
		begun = begun || w.from == tokenOf(g.Name)
		if !begun || !asked(w.groups, g.Name) || !asked(w.files, file) {
			continue
		}
		made := &ruleGroup{Name: g.Name, File: file, Interval: time.Second.Seconds(), Limit: g.Limit, Rules: []any{}}
		for j := range g.Rules {
			r := &g.Rules[j]
			if w.kind == "alert" && r.Record != "" || w.kind == "record" && r.Record == "" || !asked(w.rules, r.Name()) || !w.matches(labels.FromMap(r.Labels)) {
				continue
			}
			made.Rules = append(made.Rules, w.ruleOf(r))
			made.EvaluationTime += r.Took.Seconds()
			if r.Asked() {
				made.Interval = time.Duration(r.Interval).Seconds()
			}
			if made.LastEvaluation.IsZero() || r.UpTo.Before(made.LastEvaluation) {
				made.LastEvaluation = r.UpTo
			}
		}
		if len(made.Rules) == 0 {
			continue
		}
		if w.limit > 0 && len(out.Groups) == w.limit {
			out.Next = tokenOf(g.Name)
			break
		}
		out.Groups = append(out.Groups, made)
	}
	if !begun {
		return nil, badData("invalid parameter %q: %q names no group. Were rule groups changed?", "group_next_token", w.from)
	}
	return out, nil
}

// tokenOf is by what a client asks for the groups from one on.
func tokenOf(group string) string {
	sum := sha256.Sum256([]byte(file + ";" + group))
	return hex.EncodeToString(sum[:])
}

// matches reports whether all matchers of one of the selectors match.
func (w *wanted) matches(l labels.Labels) bool {
	return len(w.matchers) == 0 || slices.ContainsFunc(w.matchers, func(all []*labels.Matcher) bool {
		return !slices.ContainsFunc(all, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) })
	})
}

// ruleOf is a rule as Prometheus has those of its type.
func (w *wanted) ruleOf(r *alerts.RuleStatus) any {
	health := "ok"
	switch {
	case r.Wrong != "":
		health = "err"
	case r.UpTo.IsZero():
		health = "unknown"
	}
	if r.Record != "" {
		return &recordingRule{
			Name: r.Record, Query: r.Query(), Labels: labels.FromMap(r.Labels), Health: health, LastError: r.Wrong,
			EvaluationTime: r.Took.Seconds(), LastEvaluation: r.UpTo, Type: "recording",
		}
	}
	out := &alertingRule{
		State: r.State(), Name: r.Name(), Query: r.Query(), Duration: time.Duration(r.For).Seconds(), KeepFiringFor: time.Duration(r.KeepFiringFor).Seconds(),
		Labels: labels.FromMap(r.Labels), Annotations: labels.FromMap(r.Annotations), Health: health, LastError: r.Wrong,
		EvaluationTime: r.Took.Seconds(), LastEvaluation: r.UpTo, Type: "alerting",
	}
	if !w.bare {
		out.Alerts = activeOf(r)
	}
	return out
}

// activeOf are the alerts of a rule, which have their rule's name as a label.
func activeOf(r *alerts.RuleStatus) []*activeAlert {
	out := []*activeAlert{}
	for i := range r.Alerts {
		a := &r.Alerts[i]
		with := labels.NewBuilder(labels.FromMap(a.Labels)).Set(labels.AlertName, r.Name()).Labels()
		out = append(out, &activeAlert{Labels: with, Annotations: labels.FromMap(a.Annotations), State: a.State, ActiveAt: &a.Since, Value: valueOf(a.Count)})
	}
	return out
}

// valueOf writes a number as Prometheus writes an alert's.
func valueOf(text string) string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text // of an event that was stored otherwise
	}
	return strconv.FormatFloat(n, 'e', -1, 64)
}
