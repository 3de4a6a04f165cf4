package evaluate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/texts"
	"github.com/almanac-events/almanac/query/prometheus/expr"
	"github.com/almanac-events/almanac/schemas"
)

// notice is a transition of a rule, as it is delivered.
func (rr *ruleRun) notice(topic string, tr decide.Transition) decide.Notice {
	n := decide.Notice{
		Key: newKey(), Was: rr.keys[tr.Group], Topic: topic, Group: rr.group.Name, Rule: rr.rule.Alert, Sum: rr.rule.Sum(), By: rr.rule.GroupsBy(), Value: tr.Group,
		From: tr.From, To: tr.To, At: tr.At, Since: tr.Since, Count: decide.Number(tr.Value),
		Labels: map[string]string{}, Annotations: map[string]string{},
	}
	of := labelsOf(n.By, n.Value)
	n.User = userOf(n.By, n.Value)
	maps.Copy(n.Labels, of)
	filled := maps.Clone(of)
	filled["alertname"] = n.Rule
	for name, text := range rr.rule.Labels {
		if _, of := of[name]; of && n.By != decide.BySeries { // what a rule groups by is what tells its alerts apart
			continue
		}
		n.Labels[name] = fill(text, &n, filled)
	}
	for name, text := range rr.rule.Annotations {
		n.Annotations[name] = fill(text, &n, filled)
	}
	for _, c := range rr.group.Receivers {
		if len(rr.rule.Notify) == 0 || slices.Contains(rr.rule.Notify, c.Name) {
			n.Calls = append(n.Calls, decide.Call{Receiver: c.Name, URL: c.URL, Form: c.Form, RoutingKey: c.RoutingKey})
		}
	}
	return n
}

// labelsOf are the labels of what an alert is grouped by, and of its value.
func labelsOf(by, value string) map[string]string {
	switch by {
	case "":
		return map[string]string{}
	case decide.BySeries:
		of, err := expr.Labels(value)
		if err != nil { // of an event that was stored otherwise
			of = map[string]string{}
		}
		return of
	}
	return map[string]string{labelOf(by): value}
}

// userOf is whom an alert names by its group.
func userOf(by, value string) string {
	if by != schemas.ColUserID && by != decide.BySeries {
		return "" // as an attribute, whose label may be written alike
	}
	return labelsOf(by, value)[schemas.ColUserID]
}

var notLabel = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// labelOf is a field's name as a label.
func labelOf(field string) string { return notLabel.ReplaceAllString(field, "_") }

// fill puts the value and labels into a text.
func fill(text string, n *decide.Notice, labels map[string]string) string {
	t, err := texts.New(text)
	if err != nil { // of a rule that was applied before such a text was refused
		return fmt.Sprintf("<error expanding template: %v>", err)
	}
	return t.Fill(float64(n.Count), labels)
}
