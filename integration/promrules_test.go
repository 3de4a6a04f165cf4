package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	promclient "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/alerts/evaluate"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/query"
)

// TestPrometheusRules reads rules and alerts by Prometheus's own client. A token sees those of the topics that it may
// read whole.
func TestPrometheusRules(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app"), newTopic("other"))
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	wrong, _ := access.NewSecret()
	secrets, tokens := map[string]string{"wrong": wrong}, []access.Token{}
	for name, token := range map[string]access.Token{
		"all":  {Grants: []access.Grant{{Role: access.RoleRead, Topics: []string{"*"}}}},
		"app":  {Grants: []access.Grant{{Role: access.RoleRead, Topics: []string{"app"}}}},
		"rows": {Grants: []access.Grant{{Role: access.RoleRead, Topics: []string{"app"}}}, Where: `user_id = "u1"`},
	} {
		secret, id := access.NewSecret()
		token.Name, token.ID, token.Digest = name, id, access.DigestOf(secret)
		secrets[name], tokens = secret, append(tokens, token)
	}
	if err := keep.WriteFile(path, tokens); err != nil {
		t.Fatal(err)
	}
	k, err := keep.Open(keep.Config{File: path})
	if err != nil {
		t.Fatal(err)
	}
	base, _ := e.gateway(func(c *gateway.Config) { c.Tokens = k })
	r, err := query.New(e.connect(), e.reg, e.db)
	if err != nil {
		t.Fatal(err)
	}
	m := alerts.New(e.reg, r)
	silent := func(group, topic string, holds time.Duration) alerts.Group {
		return alerts.Group{Name: group, Rules: []alerts.Rule{{
			Alert: "Quiet", Topic: topic, Silence: alerts.Span(time.Second), For: alerts.Span(holds),
			Labels: map[string]string{"severity": "page"}, Annotations: map[string]string{"summary": "{{ $value }} events"},
		}}}
	}
	if err := m.Apply(t.Context(), []alerts.Group{silent("one", "app", 0), silent("two", "other", time.Hour)}); err != nil {
		t.Fatal(err)
	}
	evaluator, err := evaluate.New(evaluate.Config{NATS: e.connect(), Registry: e.reg, Reader: r})
	if err != nil {
		t.Fatal(err)
	}
	evaluated := func(t *testing.T) {
		t.Helper()
		eventually(t, time.Minute, func() error {
			if err := evaluator.Round(t.Context()); err != nil {
				return err
			}
			list, err := m.List(t.Context())
			if err == nil && len(list.Alerts) != 2 {
				err = fmt.Errorf("%d alerts", len(list.Alerts))
			}
			return err
		})
	}
	reads := func(at, token string) promv1.API {
		c, err := promclient.NewClient(promclient.Config{Address: base + at, RoundTripper: bearer(secrets[token])})
		if err != nil {
			t.Fatal(err)
		}
		return promv1.NewAPI(c)
	}
	for name, c := range map[string]struct {
		at, token string
		groups    []string // nil: it is refused
	}{
		"all topics":            {"", "all", []string{"one", "two"}},
		"a topic":               {"/t/other", "all", []string{"two"}},
		"a topic of some":       {"/t/app", "app", []string{"one"}},
		"all topics by some":    {"", "app", nil},
		"another topic":         {"/t/other", "app", nil},
		"a topic by some rows":  {"/t/app", "rows", nil},
		"a wrong token":         {"", "wrong", nil},
		"a topic without rules": {"/t/alerts", "all", []string{}},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: what was not evaluated for a while is not well
			evaluated(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			rules, err := reads(c.at, c.token).Rules(ctx, nil)
			active, also := reads(c.at, c.token).Alerts(ctx)
			if c.groups == nil {
				if err == nil || also == nil {
					t.Errorf("rules: %v, %+v; alerts: %v, %+v", err, rules, also, active)
				}
				return
			}
			if err != nil || also != nil || len(rules.Groups) != len(c.groups) || len(active.Alerts) != len(c.groups) {
				t.Fatalf("rules: %v, %+v; alerts: %v, %+v", err, rules, also, active)
			}
			for i, g := range rules.Groups {
				rule, ok := g.Rules[0].(promv1.AlertingRule)
				state := map[string]string{"one": "firing", "two": "pending"}[c.groups[i]]
				if !ok || len(g.Rules) != 1 || g.Name != c.groups[i] || rule.Name != "Quiet" || rule.State != state || rule.Health != promv1.RuleHealthGood || rule.LastEvaluation.IsZero() {
					t.Errorf("group %d: %+v", i, g)
				}
				a := rule.Alerts[0]
				want := model.LabelSet{"alertname": "Quiet", "severity": "page"}
				if len(rule.Alerts) != 1 || string(a.State) != state || a.Value != "0e+00" || !a.Labels.Equal(want) || a.Annotations["summary"] != "0 events" || a.ActiveAt.IsZero() {
					t.Errorf("the alert of group %d: %+v", i, a)
				}
			}
		})
	}
}
