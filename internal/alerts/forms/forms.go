package forms

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
)

// The forms.
const (
	JSON         = "json"
	Slack        = "slack"
	PagerDuty    = "pagerduty"
	Alertmanager = "alertmanager"
)

// All are the forms, the default first.
var All = []string{JSON, Slack, PagerDuty, Alertmanager}

// PagerDutyURL is where events go whose receiver names no other address, such as that of the EU.
const PagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// AlertmanagerPath ends the address of an Alertmanager.
const AlertmanagerPath = "/api/v2/alerts"

// Body returns what a receiver is sent of a transition. bare: it is the whole body of the call.
func Body(n *decide.Notice, c *decide.Call) (body json.RawMessage, bare bool, err error) {
	var v any
	switch c.Form {
	case "", JSON:
		v = toldOf(n)
	case Slack:
		v = messageOf(n)
	case PagerDuty:
		v = eventOf(n, c.RoutingKey)
	case Alertmanager:
		v = []alert{alertOf(n)}
	default:
		return nil, false, fmt.Errorf("receiver %q has the unknown form %q", c.Receiver, c.Form)
	}
	body, err = json.Marshal(v)
	return body, c.Form != "" && c.Form != JSON, err
}

// KeepsState reports whether a receiver of the form keeps the state that it was told last. What it was not told yet of an
// alert's beginning must not come after the end.
func KeepsState(form string) bool { return form == PagerDuty || form == Alertmanager }

func status(n *decide.Notice) string {
	if n.To == decide.Firing {
		return "firing"
	}
	return "resolved"
}

func at(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// labelsOf are the alert's labels with its name.
func labelsOf(n *decide.Notice) map[string]string {
	out := map[string]string{"alertname": n.Rule}
	maps.Copy(out, n.Labels)
	return out
}

// summaryOf is the alert on one line.
func summaryOf(n *decide.Notice) string {
	return cmp.Or(n.Annotations["summary"], n.Annotations["description"], n.Rule)
}

// told is Almanac's own form.
type told struct {
	Key         string            `json:"key"`
	Status      string            `json:"status"`
	Group       string            `json:"group"`
	Alert       string            `json:"alert"`
	Topic       string            `json:"topic"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Value       decide.Number     `json:"value"`
	StartsAt    time.Time         `json:"starts_at"`
	EndsAt      *time.Time        `json:"ends_at"`
	Reason      string            `json:"reason,omitempty"`
}

func toldOf(n *decide.Notice) told {
	t := told{
		Key: n.Key, Status: status(n), Group: n.Group, Alert: n.Rule, Topic: n.Topic, Labels: labelsOf(n), Annotations: n.Annotations,
		Value: n.Count, StartsAt: at(n.Since), Reason: n.Reason,
	}
	if n.To != decide.Firing {
		end := at(n.At)
		t.EndsAt = &end
	}
	return t
}

// message is what an incoming webhook of Slack takes.
type message struct {
	Text        string       `json:"text"`
	Attachments []attachment `json:"attachments"`
}

type attachment struct {
	Color    string  `json:"color"`
	Fallback string  `json:"fallback"`
	Text     string  `json:"text"`
	Fields   []field `json:"fields"`
	Ts       int64   `json:"ts"`
}

type field struct {
	Title string `json:"title"`
	Value string `json:"value"`
	Short bool   `json:"short"`
}

// escaped replaces what Slack reads as markup of its own: three characters, by its rules.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func messageOf(n *decide.Notice) message {
	color := map[string]string{"firing": "danger", "resolved": "good"}[status(n)]
	summary := escaped.Replace(summaryOf(n))
	a := attachment{Color: color, Fallback: summary, Text: escaped.Replace(n.Annotations["description"]), Ts: n.At / int64(time.Second), Fields: []field{
		{"topic", n.Topic, true}, {"value", n.Count.String(), true},
	}}
	if n.Annotations["summary"] == "" {
		a.Text = "" // it is the summary already
	}
	for _, name := range slices.Sorted(maps.Keys(n.Labels)) {
		a.Fields = append(a.Fields, field{escaped.Replace(name), escaped.Replace(n.Labels[name]), true})
	}
	if n.Reason != "" {
		a.Fields = append(a.Fields, field{"reason", escaped.Replace(n.Reason), false})
	}
	return message{Text: fmt.Sprintf("*[%s] %s* %s", strings.ToUpper(status(n)), escaped.Replace(n.Rule), summary), Attachments: []attachment{a}}
}

// event is what PagerDuty's Events API v2 takes. An event that resolves has no payload.
type event struct {
	RoutingKey string   `json:"routing_key"`
	Action     string   `json:"event_action"`
	DedupKey   string   `json:"dedup_key"`
	Client     string   `json:"client,omitempty"`
	Payload    *details `json:"payload,omitempty"`
}

type details struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"`
	Timestamp string         `json:"timestamp"`
	Component string         `json:"component"`
	Group     string         `json:"group"`
	Class     string         `json:"class"`
	Custom    map[string]any `json:"custom_details"`
}

// maxSummary is how long a summary of PagerDuty is at most, in characters.
const maxSummary = 1024

// severities are PagerDuty's, by the words that rules have in the label severity. Any other is an error.
var severities = map[string]string{
	"critical": "critical", "page": "critical", "fatal": "critical", "error": "error", "warning": "warning", "warn": "warning", "ticket": "warning", "info": "info", "none": "info",
}

func eventOf(n *decide.Notice, routingKey string) event {
	e := event{RoutingKey: routingKey, Action: "resolve", DedupKey: DedupKey(n)}
	if n.To != decide.Firing {
		return e
	}
	e.Action, e.Client = "trigger", "Almanac"
	summary := []rune(summaryOf(n))
	e.Payload = &details{
		Summary: string(summary[:min(len(summary), maxSummary)]), Source: n.Topic, Severity: cmp.Or(severities[strings.ToLower(n.Labels["severity"])], "error"),
		Timestamp: at(n.At).Format(time.RFC3339Nano), Component: cmp.Or(n.Value, n.Topic), Group: n.Group, Class: n.Rule,
		Custom: map[string]any{"labels": labelsOf(n), "annotations": n.Annotations, "value": n.Count, "starts_at": at(n.Since)},
	}
	return e
}

// DedupKey names an alert from its beginning to its end: of its rule, its value and when its condition was first met.
func DedupKey(n *decide.Notice) string {
	text, _ := json.Marshal([]any{n.Group, n.Rule, n.Value, n.Since}) // texts and a number always have a JSON form
	sum := sha256.Sum256(text)
	return "almanac-" + hex.EncodeToString(sum[:16])
}

// alert is what Alertmanager's API v2 takes.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// firesFor is how long an alert fires of which Alertmanager hears nothing more. Without an end it would take one for
// over after its resolve_timeout.
const firesFor = 30 * 24 * time.Hour

func alertOf(n *decide.Notice) alert {
	a := alert{Labels: labelsOf(n), Annotations: n.Annotations, StartsAt: at(n.Since), EndsAt: at(n.At)}
	if n.To == decide.Firing {
		a.EndsAt = a.EndsAt.Add(firesFor)
	}
	if a.Annotations == nil {
		a.Annotations = map[string]string{}
	}
	return a
}
