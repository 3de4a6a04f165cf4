package evaluate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/events"
	"github.com/almanac-events/almanac/schemas"
)

// grown are n annotations of little text, each of which makes much of what a rule groups by.
func grown(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`a%02d: '{{ reReplaceAll "." "<<<<<<<<<<<<<<<<" $labels.user_id }}'`, i))
	}
	return strings.Join(all, ", ")
}

// TestTextsOfAnAlert holds that what the texts of an alert make together fits its event and an entry of the registry, that labels come first, and that
// small texts are as they are.
func TestTextsOfAnAlert(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotations int
		whole       bool
	}{"few": {1, true}, "many": {50, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			groups := parsed(t, fmt.Sprintf(`groups: [{name: g, topic: app, rules: [{alert: A, window: 1s, condition: ">= 1", by: user_id, labels: {severity: page}, annotations: {%s, z: short}}]}]`, grown(c.annotations)))
			rr := &ruleRun{bound: bound{&groups[0], &groups[0].Rules[0]}}
			n := rr.notice("app", decide.Transition{Group: strings.Repeat("u", 200), To: decide.Firing})
			text, err := json.Marshal(&n)
			if err != nil || len(text) > maxTextsBytes+16<<10 {
				t.Errorf("the transition has %d bytes, %v", len(text), err)
			}
			ev, err := events.Event(&n)
			if err != nil || ev.Bytes() > schemas.MaxEventBytes {
				t.Errorf("its event has %d bytes, %v", ev.Bytes(), err)
			}
			if whole := !strings.Contains(string(text), "left out"); whole != c.whole || n.Labels["severity"] != "page" || len(n.Annotations) != c.annotations+1 || n.Annotations["z"] != "short" {
				t.Errorf("whole is %t, %v, %d annotations, the last is %q", whole, n.Labels, len(n.Annotations), n.Annotations["z"])
			}
		})
	}
}

// TestTextsWithReceivers holds that the event of an alert fits with as many receivers as a group has, of the longest addresses, and a summary that is its message too.
func TestTextsWithReceivers(t *testing.T) {
	t.Parallel()
	for of, address := range map[string]string{"plain": "a", "escaped": "&"} {
		for n, whole := range map[int]bool{1: true, alerts.MaxReceivers: false} {
			t.Run(fmt.Sprint(n, " ", of), func(t *testing.T) {
				t.Parallel()
				groups := parsed(t, fmt.Sprintf(`groups: [{name: g, topic: app, rules: [{alert: A, window: 1s, condition: ">= 1", by: user_id, annotations: {%s, summary: '{{ reReplaceAll "." "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" $labels.user_id }}'}}]}]`, grown(alerts.MaxNames-1)))
				for i := range n {
					groups[0].Receivers = append(groups[0].Receivers, alerts.Receiver{Name: fmt.Sprint("r", i), URL: "http://h/?" + strings.Repeat(address, 2<<10-10)})
				}
				rr := &ruleRun{bound: bound{&groups[0], &groups[0].Rules[0]}}
				notice := rr.notice("app", decide.Transition{Group: strings.Repeat("u", maxValueBytes), To: decide.Firing, At: time.Now().UnixNano()})
				ev, err := events.Event(&notice)
				if err == nil {
					err = ev.Validate(notice.At, notice.At)
				}
				if err != nil || ev.Bytes() > schemas.MaxEventBytes {
					t.Errorf("its event has %d bytes, %v", ev.Bytes(), err)
				}
				if summary := notice.Annotations["summary"]; whole != (len(summary) == 64*maxValueBytes) || len(notice.Calls) != n || !strings.HasPrefix(summary, ev.Message) {
					t.Errorf("%d are told, the summary has %d bytes and the message %q", len(notice.Calls), len(summary), ev.Message)
				}
			})
		}
	}
}

// TestLongTextsHoldUpNothing holds that a rule whose texts make more than a message of NATS takes fires, and that the others of its topic go on.
func TestLongTextsHoldUpNothing(t *testing.T) {
	t.Parallel()
	g := newRig(t, schemas.NewTopic("app"))
	g.apply(`groups: [{name: long, topic: app, rules: [{alert: Long, window: 1h, condition: ">= 1", by: user_id, annotations: {` + grown(alerts.MaxNames) + `}}, {alert: Short, window: 1h, condition: ">= 1"}]}]`)
	e := g.evaluator(nil)
	user := strings.Repeat("u", maxValueBytes)
	g.send("app", failures(1, user)...)
	g.rounds(e, g.has("Long "+user+" firing", "Short  firing"))
}

// TestLongLabelNames holds that a series is an alert where the names of its labels fit the event of an alert, and that the rule says so where not.
func TestLongLabelNames(t *testing.T) {
	t.Parallel()
	for n, says := range map[int]string{200: "", schemas.MaxAttrKeyBytes - len(events.LabelPrefix): "", schemas.MaxAttrKeyBytes - len(events.LabelPrefix) + 1: "sum by others"} {
		all := promql.Vector{{Metric: labels.FromStrings("host", "a", strings.Repeat("x", n), "b"), F: 1}}
		got, err := samplesOf(all, 0)
		if says != "" {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("a name of %d bytes: %v", n, err)
			}
			continue
		}
		if err != nil || len(got) != 1 {
			t.Errorf("a name of %d bytes: %v, %v", n, got, err)
		}
		for value := range got {
			rr := &ruleRun{bound: bound{&alerts.Group{Name: "g"}, &alerts.Rule{Alert: "A", Topic: "metrics", Expr: "up"}}}
			notice := rr.notice("metrics", decide.Transition{Group: value, To: decide.Firing, At: time.Now().UnixNano()})
			ev, err := events.Event(&notice)
			if err == nil {
				err = ev.Validate(notice.At, notice.At)
			}
			if err != nil {
				t.Errorf("the event of a name of %d bytes: %v", n, err)
			}
		}
	}
}
