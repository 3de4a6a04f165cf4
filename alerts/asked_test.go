package alerts

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/prometheus/common/model"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

func TestAskedRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rule, says string }{
		"an expression":              {`expr: up == 0`, ""},
		"a scalar":                   {`expr: time() > bool 5`, ""},
		"with all that it may have":  {`expr: up == 0, interval: 15s, query_offset: 30s, for: 5m, keep_firing_for: 1m`, ""},
		"that is not one":            {`expr: up ==`, "expr: 1:6: parse error"},
		"a range":                    {`expr: "up[5m]"`, "it is of type matrix; a rule needs a vector or a scalar"},
		"a text":                     {`expr: '"x"'`, "it is of type string"},
		"that costs too much":        {`expr: "max_over_time(up[10y:1ms])"`, "its subqueries come to"},
		"that is too long":           {`expr: "up > ` + strings.Repeat("0", MaxExprBytes) + `"`, "expr has 16389 bytes; the limit is 16384"},
		"with a window":              {`expr: up == 0, window: 5m`, "expr has its window, condition and by in it"},
		"with a condition":           {`expr: up == 0, condition: "> 1"`, "expr has its window, condition and by in it"},
		"with by":                    {`expr: up == 0, by: job`, "expr has its window, condition and by in it"},
		"with a filter":              {`expr: up == 0, where: level = "error"`, "where and silence are of rules that count events"},
		"with a silence":             {`expr: up == 0, silence: 5m`, "where and silence are of rules that count events"},
		"and a meter":                {`expr: up == 0, meter: bytes`, "either expr, or meter and measure"},
		"a fraction of a second":     {`expr: up == 0, interval: 1500ms`, "expected whole seconds"},
		"each second half a day":     {`expr: up == 0, interval: 12h`, "expected whole seconds, 1s to 1h"},
		"far back":                   {`expr: up == 0, query_offset: 2h`, "query_offset: 2h0m0s; expected at most 1h"},
		"a template":                 {`expr: up == 0, annotations: {a: "{{ $value | humanize }} of {{ $labels.job }}"}`, ""},
		"a template that asks":       {`expr: up == 0, annotations: {a: "{{ query \"up\" | first | value }}"}`, `label or annotation "a": query is not built in templates`},
		"a template that is not one": {`expr: up == 0, annotations: {a: "{{ $value"}`, `label or annotation "a": the template cannot be read`},
		"a sum":                      {`meter: bytes, window: 1h, condition: "> 5"`, ""},
		"a count":                    {`meter: bytes, measure: count, window: 1h, condition: "> 5", by: space`, ""},
		"a size":                     {`meter: bytes, measure: size, condition: "> 5", by: user_id`, ""},
		"a size of a window":         {`meter: bytes, measure: size, window: 1h, condition: "> 5"`, "a size is at an instant"},
		"without a window":           {`meter: bytes, condition: "> 5"`, "window: 0s; expected 1s to 744h"},
		"without a condition":        {`meter: bytes, window: 1h`, `condition: ""`},
		"an unknown measure":         {`meter: bytes, measure: integral, window: 1h, condition: "> 5"`, `measure: "integral"; expected sum, count, size`},
		"by what it does not have":   {`meter: bytes, window: 1h, condition: "> 5", by: job`, "a rule over a meter takes provider, space, user_id"},
		"a meter back in time":       {`meter: bytes, window: 1h, condition: "> 5", query_offset: 1m`, "query_offset is of rules over an expression"},
		"a measure without a meter":  {`measure: sum, window: 1h, condition: "> 5"`, "this one counts events, each second"},
		"an interval of counts":      {`silence: 1m, interval: 1m`, "this one counts events, each second"},
		"what is usual":              {`meter: bytes, window: 1d, unusual: 5, by: user_id`, ""},
		"of more days":               {`meter: bytes, measure: count, window: 1h, unusual: 3.5, days: 28, least: 100`, ""},
		"and a condition":            {`meter: bytes, window: 1d, unusual: 5, condition: "> 1"`, "either condition or unusual"},
		"days without it":            {`meter: bytes, window: 1d, days: 7, condition: "> 1"`, "either condition or unusual"},
		"least without it":           {`meter: bytes, window: 1d, least: 7`, "unusual: 0; expected a number of deviations, 1 to 1000"},
		"of a size":                  {`meter: bytes, measure: size, unusual: 5`, "a size has no such range"},
		"not a number":               {`meter: bytes, window: 1d, unusual: .nan`, "unusual: NaN; expected a number of deviations"},
		"not a number at least":      {`meter: bytes, window: 1d, unusual: 5, least: .nan`, "least: NaN; expected 0 or more"},
		"of two days":                {`meter: bytes, window: 1d, unusual: 5, days: 2`, "days: 2; expected 3 to 28"},
		"windows over each other":    {`meter: bytes, window: 25h, unusual: 5`, "window: 25h0m0s; of what is usual each day expected at most 24h0m0s"},
		"of an expression":           {`expr: up, unusual: 5`, "unusual, days and least are of rules over a meter"},
		"of events":                  {`window: 1h, unusual: 5`, "unusual, days and least are of rules over a meter"},
		"a rule that records":        {`record: "job:up:sum", expr: sum by (job) (up), labels: {a: "{{ not a template", job: ""}`, ""},
		"a record of an alert":       {`record: "job:up:sum", alert: A, expr: up`, `record "job:up:sum" and alert: expected one of them`},
		"a record of events":         {`record: x, window: 1h, condition: "> 5"`, "is over an expression"},
		"a record of a meter":        {`record: x, meter: bytes, window: 1h, condition: "> 5"`, "is over an expression"},
		"a record with for":          {`record: x, expr: up, for: 5m`, "for, keep_firing_for, annotations and notify are of alerts"},
		"a record with annotations":  {`record: x, expr: up, annotations: {a: b}`, "are of alerts"},
		"a record with its name":     {`record: x, expr: up, labels: {__name__: y}`, `label "__name__"`},
		"a record of a range":        {`record: x, expr: "up[5m]"`, "needs a vector or a scalar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "{alert: A, " + c.rule + "}"
			if strings.HasPrefix(c.rule, "record") {
				text = "{" + c.rule + "}"
			}
			_, err := Parse([]byte(`groups: [{name: g, topic: app, rules: [` + text + `]}]`))
			if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, ErrRule) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("it says %v, want %q", err, c.says)
			}
		})
	}
}

// promFile is a file as people write them for Prometheus.
const promFile = `
groups:
  - name: node
    interval: 30s
    query_offset: 1m
    labels: {team: infra, severity: none}
    rules:
      - alert: DiskFills
        expr: |
          node_filesystem_avail_bytes{fstype!=""}
            / node_filesystem_size_bytes * 100 < 15
        for: 1h
        labels: {severity: warning}
        annotations:
          summary: Filesystem on {{ $labels.device }} has {{ printf "%.2f" $value }}% left.
      - alert: DiskFills
        expr: node_filesystem_avail_bytes / node_filesystem_size_bytes * 100 < 5
        for: 30m
        keep_firing_for: 5m
        labels: {severity: critical}
  - name: up
    limit: 10
    rules:
      - {alert: Down, expr: up == 0}
  - name: http
    labels: {team: web, job: any}
    rules:
      - record: job:http_inprogress_requests:sum
        expr: sum by (job) (http_inprogress_requests)
      - record: job:http_inprogress_requests:sum
        expr: sum (http_inprogress_requests)
        labels: {job: "", of: all}
      - {record: "instance_path:request_failures:rate5m", expr: "rate(request_failures_total{job=\"myjob\"}[5m])", labels: {job: myjob}}
      - {alert: Many, expr: "job:http_inprogress_requests:sum > 100"}
`

// TestPrometheusFile reads a file of Prometheus as it is: what its own reader reads in it is what the rules have.
func TestPrometheusFile(t *testing.T) {
	t.Parallel()
	groups, err := ParseFor([]byte(promFile), "metrics")
	if err != nil {
		t.Fatal(err)
	}
	want, errs := rulefmt.Parse([]byte(promFile), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	if len(errs) > 0 || len(want.Groups) != len(groups) {
		t.Fatalf("%v; %d groups, want %d", errs, len(groups), len(want.Groups))
	}
	for i, g := range groups {
		w := want.Groups[i]
		for j, r := range g.Rules {
			of := maps.Clone(w.Labels)
			if of == nil {
				of = map[string]string{}
			}
			maps.Copy(of, w.Rules[j].Labels)
			got := labels.NewBuilder(labels.FromMap(r.Labels)).Del(labels.AlertName).Labels()
			interval, offset := time.Minute, time.Duration(0)
			if w.Interval > 0 {
				interval = time.Duration(w.Interval)
			}
			if w.QueryOffset != nil {
				offset = time.Duration(*w.QueryOffset)
			}
			if g.Limit != w.Limit || r.Record != w.Rules[j].Record || r.Name() != cmp.Or(w.Rules[j].Alert, w.Rules[j].Record) || r.Expr != w.Rules[j].Expr || time.Duration(r.For) != time.Duration(w.Rules[j].For) || time.Duration(r.KeepFiringFor) != time.Duration(w.Rules[j].KeepFiringFor) ||
				!labels.Equal(got, labels.NewBuilder(labels.FromMap(of)).Labels()) || !maps.Equal(r.Annotations, w.Rules[j].Annotations) || time.Duration(r.Interval) != interval || time.Duration(r.QueryOffset) != offset || r.Topic != "metrics" {
				t.Errorf("group %s, rule %d is %+v, want %+v", g.Name, j, r, w.Rules[j])
			}
		}
	}
	if a, b := groups[0].Rules[0].Alert, groups[0].Rules[1].Alert; a != "DiskFills" || b != "DiskFills (2)" {
		t.Errorf("two rules of one name are %q and %q", a, b)
	}
	twice := strings.Replace(promFile, "sum (http_inprogress_requests)\n        labels: {job: \"\", of: all}", "sum by (job) (http_inprogress_requests)", 1)
	if _, err := ParseFor([]byte(twice), "metrics"); err == nil || !strings.Contains(err.Error(), "two rules of that name") {
		t.Errorf("one rule that is there twice: %v", err)
	}
	if err := groups[0].Validate(); err != nil || groups[0].Rules[1].Alert != "DiskFills (2)" || groups[0].Rules[1].Name() != "DiskFills" {
		t.Errorf("read again: %v, %+v", err, groups[0].Rules[1])
	}
	for text, says := range map[string]string{
		strings.Replace(promFile, "interval: 30s", "limit: -5", 1):           "limit: -5",
		strings.Replace(promFile, "interval: 30s", "partial_response: x", 1): "partial_response",
	} {
		if _, err := ParseFor([]byte(text), "metrics"); !errors.Is(err, ErrRule) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if _, err := Parse([]byte(promFile)); err == nil || !strings.Contains(err.Error(), "topic is missing") {
		t.Errorf("without a topic: %v", err)
	}
}

// Rules that are asked for are over topics of their kind.
func TestCompileAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule Rule
		kind kinds.Kind
		ok   bool
	}{
		{Rule{Expr: "up"}, kinds.Metric, true}, {Rule{Expr: "up"}, kinds.Log, false}, {Rule{Expr: "up"}, kinds.Meter, false},
		{Rule{Meter: "b"}, kinds.Meter, true}, {Rule{Meter: "b"}, kinds.Metric, false}, {Rule{Meter: "b"}, kinds.Document, false},
	} {
		topic := schemas.NewTopicOf(c.kind, "app")
		if _, err := c.rule.Compile(&topic); (err == nil) != c.ok {
			t.Errorf("%+v over kind %s: %v", c.rule, c.kind, err)
		}
	}
}

// Instants of a rule are whole intervals apart, those of a group are the same, and groups are spread.
func TestLast(t *testing.T) {
	t.Parallel()
	r, spread := Rule{Expr: "up", Interval: Span(time.Minute)}, map[int64]bool{}
	now := time.Date(2026, 11, 27, 3, 4, 5, 6, time.UTC).UnixNano()
	for i := range 100 {
		group := fmt.Sprint("g", i)
		at := r.Last(group, now)
		if at > now || at <= now-int64(time.Minute) || at%int64(time.Second) != 0 {
			t.Errorf("group %s: %s is its last up to %s", group, time.Unix(0, at), time.Unix(0, now))
		}
		if next := r.Last(group, at+int64(time.Minute)); next != at+int64(time.Minute) || r.Last(group, next-1) != at || r.Last(group, at) != at {
			t.Errorf("group %s: after %d comes %d", group, at, next)
		}
		spread[at] = true
	}
	if len(spread) < 30 {
		t.Errorf("100 groups have %d instants", len(spread))
	}
}

// What all rules ask for together is bounded.
func TestAskedWithin(t *testing.T) {
	t.Parallel()
	group := func(name string, n int, every time.Duration) Group {
		g := Group{Name: name}
		for i := range n {
			g.Rules = append(g.Rules, Rule{Alert: fmt.Sprint(i), Topic: "m", Expr: "up", Interval: Span(every)})
		}
		return g
	}
	usual := func(every int) Group {
		return Group{Name: "u", Rules: []Rule{{Alert: "U", Topic: "m", Meter: "b", Window: Span(time.Hour), Unusual: 5, Days: 119, Interval: Span(time.Duration(every) * time.Second)}}}
	}
	for name, c := range map[string]struct {
		groups []Group
		says   string
	}{
		"as many as may be":  {[]Group{group("a", MaxAsked/2, 30*time.Second), group("b", MaxAsked/2, 30*time.Second)}, ""},
		"one more":           {[]Group{group("a", MaxAsked/2, time.Hour), group("b", MaxAsked/2+1, time.Hour)}, "301 rules over expressions and meters; the limit is 300"},
		"too often":          {[]Group{group("a", 10, time.Second), group("b", 1, time.Second)}, "660 evaluations of them in a minute"},
		"each day asks too":  {[]Group{usual(10)}, "720 evaluations of them in a minute"},
		"as often as may be": {[]Group{group("a", 10, time.Second)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := within(nil, slices.Clone(c.groups))
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}
