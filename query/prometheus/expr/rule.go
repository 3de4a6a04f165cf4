package expr

import (
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Check refuses an expression that no rule can be evaluated by at an instant.
func Check(text string) error {
	e, err := Parser().ParseExpr(text)
	if err != nil {
		return err
	}
	if t := e.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		return fmt.Errorf("it is of type %s; a rule needs a vector or a scalar", t)
	}
	_, err = CostOf(e, 0, 0)
	return err
}

// Labels reads what labels.Labels writes as text.
func Labels(text string) (map[string]string, error) {
	l, err := parser.NewParser(parser.Options{}).ParseMetric(text)
	if err != nil {
		return nil, err
	}
	return l.Map(), nil
}

// ValidName reports whether a text can name a metric.
func ValidName(text string) bool { return model.UTF8Validation.IsValidMetricName(text) }

// Reads reports whether an expression reads one of some metrics. A selector without the metric's name, or with a pattern of it, reads
// those that it matches.
func Reads(text string, metrics []string) bool {
	e, err := Parser().ParseExpr(text)
	if err != nil {
		return false
	}
	reads := false
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			reads = reads || slices.ContainsFunc(metrics, func(name string) bool { return selects(s, name) })
		}
		return nil
	})
	return reads
}

// selects reports whether a selector selects series of a metric.
func selects(s *parser.VectorSelector, name string) bool {
	return !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel && !m.Matches(name) })
}
