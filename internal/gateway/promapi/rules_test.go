package promapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/prometheus"
)

// statuses are rules of three groups: one that fires, one that is late, one that is new.
func statuses() []alerts.GroupStatus {
	at := time.Date(2026, 11, 27, 3, 19, 59, 0, time.UTC)
	rule := func(name string, r alerts.Rule) alerts.Rule {
		r.Alert, r.Topic = name, "app"
		return r
	}
	return []alerts.GroupStatus{
		{Group: alerts.Group{Name: "logins"}, Rules: []alerts.RuleStatus{
			{
				UpTo: at.Add(time.Minute), Rule: rule("Failed", alerts.Rule{
					Where: `type = "no"`, Window: alerts.Span(time.Minute), Condition: ">= 5", By: "user_id", For: alerts.Span(time.Second), KeepFiringFor: alerts.Span(2 * time.Minute),
					Labels: map[string]string{"severity": "page"}, Annotations: map[string]string{"summary": "{{ $value }}"},
				}),
				Alerts: []alerts.Alert{
					{State: "pending", Since: at.Add(time.Second), Rule: "Failed", Count: "5", Labels: map[string]string{"user_id": "u2"}},
					{State: "firing", Since: at, Rule: "Failed", Count: "12", Labels: map[string]string{"severity": "page", "user_id": "u1"}, Annotations: map[string]string{"summary": "12"}},
				},
			},
			{UpTo: at, Rule: rule("Quiet", alerts.Rule{Silence: alerts.Span(15 * time.Minute)})},
		}},
		{Group: alerts.Group{Name: "late"}, Rules: []alerts.RuleStatus{{UpTo: at, Wrong: "nothing evaluates it", Rule: rule("Late", alerts.Rule{Window: alerts.Span(time.Hour), Condition: "> 1", Labels: map[string]string{"team": "b"}})}}},
		{Group: alerts.Group{Name: "new"}, Rules: []alerts.RuleStatus{{Rule: rule("New", alerts.Rule{Silence: alerts.Span(time.Hour)})}}},
		{Group: alerts.Group{Name: "records", Limit: 5}, Rules: []alerts.RuleStatus{
			{UpTo: at, Took: 1500 * time.Millisecond, Rule: alerts.Rule{Record: "job:up:sum", Expr: "sum by (job) (up)", Topic: "metrics", Interval: alerts.Span(time.Minute), Labels: map[string]string{"team": "c"}}},
			{UpTo: at, Wrong: "too many", Rule: alerts.Rule{Record: "job:up:avg", Expr: "avg by (job) (up)", Topic: "metrics", Interval: alerts.Span(time.Minute)}},
		}},
	}
}

const (
	failed = `{"state":"firing","name":"Failed","query":"count by (user_id) (app where type = \"no\" within 1m0s) >= 5","duration":1,"keepFiringFor":120,"labels":{"severity":"page"},"annotations":{"summary":"{{ $value }}"},` +
		`"alerts":[{"labels":{"alertname":"Failed","user_id":"u2"},"annotations":{},"state":"pending","activeAt":"2026-11-27T03:20:00Z","value":"5e+00"},{"labels":{"alertname":"Failed","severity":"page","user_id":"u1"},"annotations":{"summary":"12"},"state":"firing","activeAt":"2026-11-27T03:19:59Z","value":"1.2e+01"}],` +
		`"health":"ok","evaluationTime":0,"lastEvaluation":"2026-11-27T03:20:59Z","type":"alerting"}`
	quiet  = `{"state":"inactive","name":"Quiet","query":"count (app within 15m0s) == 0","duration":0,"keepFiringFor":0,"labels":{},"annotations":{},"alerts":[],"health":"ok","evaluationTime":0,"lastEvaluation":"2026-11-27T03:19:59Z","type":"alerting"}`
	late   = `{"state":"inactive","name":"Late","query":"count (app within 1h0m0s) \u003e 1","duration":0,"keepFiringFor":0,"labels":{"team":"b"},"annotations":{},"alerts":[],"health":"err","lastError":"nothing evaluates it","evaluationTime":0,"lastEvaluation":"2026-11-27T03:19:59Z","type":"alerting"}`
	unseen = `{"state":"inactive","name":"New","query":"count (app within 1h0m0s) == 0","duration":0,"keepFiringFor":0,"labels":{},"annotations":{},"alerts":[],"health":"unknown","evaluationTime":0,"lastEvaluation":"0001-01-01T00:00:00Z","type":"alerting"}`
)

func group(name, last string, rules ...string) string {
	return `{"name":"` + name + `","file":"almanac","rules":[` + strings.Join(rules, ",") + `],"interval":1,"limit":0,"evaluationTime":0,"lastEvaluation":"` + last + `"}`
}

// TestRules holds the shape of /api/v1/rules, and which rules its parameters select.
func TestRules(t *testing.T) {
	t.Parallel()
	a := New(Config{Store: prometheus.New(new(query.Reader))})
	const at, begin = "2026-11-27T03:19:59Z", "0001-01-01T00:00:00Z"
	escaped := strings.ReplaceAll(failed, ">=", `\u003e=`)
	logins, other, young := group("logins", at, escaped, quiet), group("late", at, late), group("new", begin, unseen)
	const summed = `{"name":"job:up:sum","query":"sum by (job) (up)","labels":{"team":"c"},"health":"ok","evaluationTime":1.5,"lastEvaluation":"2026-11-27T03:19:59Z","type":"recording"}`
	const records = `{"name":"records","file":"almanac","rules":[` + summed + `,{"name":"job:up:avg","query":"avg by (job) (up)","labels":{},"health":"err","lastError":"too many","evaluationTime":0,"lastEvaluation":"2026-11-27T03:19:59Z","type":"recording"}],"interval":60,"limit":5,"evaluationTime":1.5,"lastEvaluation":"2026-11-27T03:19:59Z"}`
	list := func(next string, groups ...string) string {
		if next != "" {
			next = `,"groupNextToken":"` + next + `"`
		}
		return `{"groups":[` + strings.Join(groups, ",") + `]` + next + `}`
	}
	for name, c := range map[string]struct{ asks, want, says string }{
		"all":                     {"", list("", logins, other, young, records), ""},
		"alerts":                  {"type=alert", list("", logins, other, young), ""},
		"a rule":                  {"rule_name[]=Quiet&type=alert", list("", group("logins", at, quiet)), ""},
		"groups":                  {"rule_group[]=new&rule_group[]=late", list("", other, young), ""},
		"another file":            {"file[]=x.yaml", list(""), ""},
		"this file":               {"file[]=almanac&rule_name[]=New", list("", young), ""},
		"labels":                  {"match[]=" + url.QueryEscape(`{team="b"}`), list("", other), ""},
		"one of two selectors":    {"match[]=" + url.QueryEscape(`{team="b",severity="page"}`) + "&match[]=" + url.QueryEscape(`{severity="page"}`), list("", group("logins", "2026-11-27T03:20:59Z", escaped)), ""},
		"what records":            {"type=record", list("", records), ""},
		"one that records":        {"rule_name[]=job:up:avg&type=record", list("", strings.NewReplacer(summed+",", "", `"evaluationTime":1.5`, `"evaluationTime":0`).Replace(records)), ""},
		"without alerts":          {"exclude_alerts=true&rule_name[]=Quiet", list("", group("logins", at, strings.Replace(quiet, `"alerts":[]`, `"alerts":null`, 1))), ""},
		"a page":                  {"group_limit=1", list(tokenOf("late"), logins), ""},
		"the next page":           {"group_limit=3&group_next_token=" + tokenOf("late"), list("", other, young, records), ""},
		"a page of some":          {"group_limit=1&rule_name[]=New", list("", young), ""},
		"an unknown type":         {"type=x", "", `"type": not supported value "x"`},
		"a bad selector":          {"match[]={", "", `"match[]"`},
		"a bad switch":            {"exclude_alerts=maybe", "", `"exclude_alerts"`},
		"no groups":               {"group_limit=0", "", `"group_limit"`},
		"a token alone":           {"group_next_token=x", "", "group_limit needs to be present"},
		"a token that is no more": {"group_limit=1&group_next_token=x", "", "Were rule groups changed?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/rules?"+c.asks, nil)
			if err := r.ParseForm(); err != nil {
				t.Fatal(err)
			}
			want, err := a.wanted(r)
			var got *ruleDiscovery
			if err == nil {
				got, err = want.of(statuses())
			}
			if c.says != "" {
				if err == nil || refused(err).status != 400 || !strings.Contains(err.Error(), c.says) {
					t.Errorf("it says %v, want %q", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(got)
			if err != nil || string(text) != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, text, c.want)
			}
		})
	}
}

// A rule over an expression has its own interval and expression, and its alerts the name that a file of Prometheus gives them.
func TestRulesOverExpressions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 3, 19, 59, 0, time.UTC)
	g := alerts.Group{Name: "node", Topic: "cpu", Interval: alerts.Span(30 * time.Second), Rules: []alerts.Rule{{Alert: "Full", Expr: "up == 0"}, {Alert: "Full", Expr: "up == 1"}}}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	fires := []alerts.Alert{{State: "firing", Since: at, Rule: g.Rules[1].Alert, Count: "1", Labels: map[string]string{"host": "a", "alertname": "Full"}}}
	out, err := (&wanted{rules: []string{"Full"}}).of([]alerts.GroupStatus{{Group: g, Rules: []alerts.RuleStatus{{UpTo: at, Rule: g.Rules[0]}, {UpTo: at, Rule: g.Rules[1], Alerts: fires}}}})
	if err != nil || len(out.Groups) != 1 || len(out.Groups[0].Rules) != 2 || out.Groups[0].Interval != 30 {
		t.Fatalf("%v, %+v", err, out)
	}
	for i, query := range []string{"up == 0", "up == 1"} {
		if r := out.Groups[0].Rules[i].(*alertingRule); r.Name != "Full" || r.Query != query {
			t.Errorf("rule %d is %s: %s", i, r.Name, r.Query)
		}
	}
	if l := out.Groups[0].Rules[1].(*alertingRule).Alerts[0].Labels; l.Get("alertname") != "Full" || l.Get("host") != "a" {
		t.Errorf("its alert has the labels %s", l)
	}
}

// Rules and alerts are also where Grafana's source of type Loki asks for them; nothing else is there.
func TestRulesBelowPrometheus(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	New(Config{Store: prometheus.New(new(query.Reader))}).Add(mux)
	for path, there := range map[string]bool{
		"/prometheus/api/v1/rules": true, "/prometheus/api/v1/alerts": true, "/t/app/prometheus/api/v1/rules": true, "/t/app/prometheus/api/v1/alerts": true,
		"/prometheus/api/v1/query": false, "/prometheus/rules": false,
	} {
		if _, pattern := mux.Handler(httptest.NewRequestWithContext(t.Context(), "GET", path, nil)); (pattern != "") != there {
			t.Errorf("GET %s is served by %q", path, pattern)
		}
	}
}
