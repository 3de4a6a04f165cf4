package alerttest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/internal/ops/metrics"
)

const (
	files     = "../../../deploy/prometheus"
	runbooks  = "../../../docs/runbooks"
	dashboard = "../../../deploy/grafana/almanac.json"
)

// unitTests is the file of rule tests, as far as it is used.
type unitTests struct {
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
	Tests     []struct {
		Name     string
		Interval model.Duration
		Series   []struct{ Series, Values string } `yaml:"input_series"`
		Exprs    []expr                            `yaml:"promql_expr_test"`
	}
}

type expr struct {
	Expr    string
	At      model.Duration `yaml:"eval_time"`
	Samples []struct {
		Labels string
		Value  float64
	} `yaml:"exp_samples"`
}

func load(t *testing.T) []Rule {
	t.Helper()
	rules, err := Load(filepath.Join(files, "almanac.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestRules carries out the unit tests of the rules: each alert fires in one, and does not in another.
func TestRules(t *testing.T) {
	t.Parallel()
	rules := load(t)
	var all unitTests
	text, err := os.ReadFile(filepath.Join(files, "almanac.test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	dec.KnownFields(true)
	if err := dec.Decode(&all); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for i := range all.Tests {
		one := &all.Tests[i]
		t.Run(one.Name, func(t *testing.T) {
			var s Samples
			begin := time.Unix(0, 0)
			end := begin
			for _, in := range one.Series {
				of, values, err := Parser().ParseSeriesDesc(in.Series + " " + in.Values)
				if err != nil {
					t.Fatal(err)
				}
				for j, v := range values {
					if !v.Omitted {
						s.Add(of, begin.Add(time.Duration(j)*time.Duration(one.Interval)), v.Value)
					}
				}
			}
			for _, e := range one.Exprs {
				end = later(end, begin.Add(time.Duration(e.At)))
			}
			asked := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
				return !slices.ContainsFunc(one.Exprs, func(e expr) bool { return strings.Contains(e.Expr, `"`+r.Alert+`"`) })
			})
			if err := s.Firing(t.Context(), asked, begin, end, time.Duration(all.Interval)); err != nil {
				t.Fatal(err)
			}
			for _, e := range one.Exprs {
				got, err := s.Eval(t.Context(), e.Expr, begin.Add(time.Duration(e.At)))
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != len(e.Samples) {
					t.Errorf("%s at %s: %v, expected %v", e.Expr, e.At, got, e.Samples)
					continue
				}
				for j := range got {
					want, err := Parser().ParseMetric(e.Samples[j].Labels)
					if err != nil || !labels.Equal(got[j].Metric, want) || got[j].F != e.Samples[j].Value {
						t.Errorf("%s at %s: %v, expected %v", e.Expr, e.At, got, e.Samples)
					}
				}
				name := strings.Split(e.Expr, `"`)[1]
				if len(got) > 0 {
					fires[name] = true
				} else {
					quiet[name] = true
				}
			}
		})
	}
	for _, r := range rules {
		if !fires[r.Alert] || !quiet[r.Alert] {
			t.Errorf("%s: fires in a test: %v, does not in another: %v", r.Alert, fires[r.Alert], quiet[r.Alert])
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// TestRunbooks holds that an alert has its runbook, which names it, and that there is no other.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	left := map[string]bool{}
	found, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		left[filepath.Base(f)] = true
	}
	delete(left, "README.md")
	for _, r := range load(t) {
		name := filepath.Base(r.Annotations["runbook_url"])
		text, err := os.ReadFile(filepath.Join(runbooks, name))
		if err != nil || !strings.HasPrefix(string(text), "# "+r.Alert+"\n") {
			t.Errorf("%s: %s: %v", r.Alert, name, err)
		}
		for _, metric := range names(t, r.Expr) {
			if !strings.Contains(string(text), "`"+metric) {
				t.Errorf("%s does not say what it asks: %s", name, metric)
			}
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" || r.Annotations["summary"] == "" {
			t.Errorf("%s: severity %q, summary %q", r.Alert, s, r.Annotations["summary"])
		}
		delete(left, name)
	}
	if len(left) > 0 {
		t.Errorf("runbooks of no alert: %v", slices.Sorted(maps.Keys(left)))
	}
}

// TestAlertsAreCounted holds that docs/metrics.md says how many there are.
func TestAlertsAreCounted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/metrics.md")
	if said := fmt.Sprintf("has %d alerts, ", len(load(t))); err != nil || !strings.Contains(string(text), said) {
		t.Errorf("docs/metrics.md does not say %q (%v)", said, err)
	}
}

func names(t *testing.T, expr string) []string {
	t.Helper()
	all, err := Names(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return all
}

// TestNamesAreDeclared holds that whatever is named of Almanac's metrics is one.
func TestNamesAreDeclared(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range metrics.All() {
		known[m.Name] = true
		if m.Kind == metrics.Histogram {
			known[m.Name+"_sum"], known[m.Name+"_count"], known[m.Name+"_bucket"] = true, true, true
		}
	}
	named, err := Named("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(named) < 40 {
		t.Errorf("%d names are not all of them", len(named))
	}
	for name, where := range named {
		if !known[name] {
			t.Errorf("%s names %s, which is not a metric", where, name)
		}
	}
}
