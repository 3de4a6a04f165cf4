package alerttest

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// Rule is an alert.
type Rule struct {
	Alert, Expr string
	// For is how long the expression must be true before the alert fires.
	For time.Duration

	Labels, Annotations map[string]string
}

// Parser reads expressions as Prometheus does.
func Parser() parser.Parser { return parser.NewParser(parser.Options{}) }

// Load reads a file of rules and checks it as `promtool check rules` does.
func Load(path string) ([]Rule, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a test's own file
	if err != nil {
		return nil, err
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, Parser(), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(errs...))
	}
	var all []Rule
	for _, g := range groups.Groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			if r.Alert == "" || r.KeepFiringFor != 0 {
				return nil, fmt.Errorf("%s: %s%s: only alerts are known here, without keep_firing_for", path, r.Record, r.Alert)
			}
			all = append(all, Rule{r.Alert, r.Expr, time.Duration(r.For), r.Labels, r.Annotations})
		}
	}
	return all, nil
}

// Names returns the metrics that an expression selects.
func Names(expr string) (names []string, err error) {
	e, err := Parser().ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			for _, m := range s.LabelMatchers {
				if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
					names = append(names, m.Value)
				}
			}
		}
		return nil
	})
	return names, nil
}
