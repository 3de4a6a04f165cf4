package expr

import (
	"fmt"

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
