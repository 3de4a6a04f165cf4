package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// TestAlertsOverMetricsAndMeters holds that `up` evaluates a file of Prometheus's and rules over a meter with the accounts that its
// parts have, and tells what it cannot evaluate.
func TestAlertsOverMetricsAndMeters(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok("", "topics", "apply", "metrics", "--kind", "metric")
	b.ok("", "topics", "apply", "bytes", "--kind", "meter")
	b.ok(`
groups:
- name: machines
  interval: 2s
  rules:
  - {alert: Hot, expr: temperature > 90, labels: {severity: warning}, annotations: {summary: "{{ $labels.host }} has {{ $value | humanize }}"}}
  - {alert: Hot, expr: temperature > 1000}
`, "alerts", "apply", "--topic", "metrics", "-f", "-")
	b.ok(`groups: [{name: bills, topic: bytes, interval: 2s, rules: [{alert: Much, meter: stored, window: 1h, condition: "> 100", by: space}]}]`, "alerts", "apply", "-f", "-")
	now := time.Now().UTC().Format(time.RFC3339Nano)
	b.ok(fmt.Sprintf(`{"ts":%q,"type":"temperature","value":95,"host":"a"}`+"\n"+`{"ts":%q,"type":"temperature","value":20,"host":"b"}`+"\n", now, now), "send", "metrics", "--format", "ndjson")
	b.ok(fmt.Sprintf(`{"ts":%q,"type":"stored","provider":"p","space":"s1","cause":"c1","delta":101}`+"\n", now), "send", "bytes", "--format", "ndjson")
	want := []string{`Hot {host="a"} firing a has 95`, "Much s1 firing "}
	embeddedtest.Eventually(t, maxWait, func() error {
		var got []string
		page, err := tryDecoded[alerts.Page](b, "alerts", "history", "-o", "json")
		if err != nil {
			return err
		}
		for _, a := range page.Alerts {
			got = append(got, fmt.Sprintf("%s %s %s %s", a.Rule, a.Value, a.State, a.Annotations["summary"]))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("the transitions are %q, want %q", got, want)
		}
		return nil
	})
	for _, rule := range []string{`alert: A`, `record: "a:b"`} {
		if r := b.run(`groups: [{name: x, rules: [{`+rule+`, expr: up}]}]`, "alerts", "apply", "--topic", "bytes", "-f", "-"); r.code == exitOK {
			t.Errorf("an expression over a meter was applied, of %s", rule)
		}
	}
	b.ok(`groups: [{name: x, rules: [{record: "a:b", expr: up}]}]`, "alerts", "apply", "--topic", "metrics", "-f", "-")
}
