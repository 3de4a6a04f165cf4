package evaluate

import (
	"encoding/json"
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
	for _, c := range rr.group.Receivers {
		if len(rr.rule.Notify) == 0 || slices.Contains(rr.rule.Notify, c.Name) {
			n.Calls = append(n.Calls, decide.Call{Receiver: c.Name, URL: c.URL, Form: c.Form, RoutingKey: c.RoutingKey})
		}
	}
	left := textsBytes(n.Calls)
	for _, name := range slices.Sorted(maps.Keys(rr.rule.Labels)) { // before annotations, which may vary: an alert is known by its labels
		if _, of := of[name]; of && n.By != decide.BySeries { // what a rule groups by is what tells its alerts apart
			continue
		}
		n.Labels[name] = fitted(fill(rr.rule.Labels[name], &n, filled), &left)
	}
	for _, name := range slices.Sorted(maps.Keys(rr.rule.Annotations)) {
		n.Annotations[name] = fitted(fill(rr.rule.Annotations[name], &n, filled), &left)
	}
	return n
}

// maxTextsBytes bounds the labels and annotations of a transition that are filled in, together and as JSON: its event has schemas.MaxEventBytes, and
// with alerts its outbox is one message of NATS.
const maxTextsBytes = 24 << 10

// roomyCalls is how many bytes receivers may have there, as JSON, that take nothing from the texts: their addresses may be long.
const roomyCalls = 16 << 10

// textsBytes is what the texts of a transition may have beside those that are told of it.
func textsBytes(calls []decide.Call) int {
	as, _ := json.Marshal(calls) // texts always have a JSON form
	return max(0, maxTextsBytes-max(0, len(as)-roomyCalls))
}

// fitted is a text that is filled in, or in its place that it is beyond what is left. The places of all that are left out are small.
func fitted(text string, left *int) string {
	as, _ := json.Marshal(text)
	if len(as) > *left {
		return fmt.Sprintf("<left out: labels, annotations and receivers have more than %d bytes>", maxTextsBytes+roomyCalls)
	}
	*left -= len(as)
	return text
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
