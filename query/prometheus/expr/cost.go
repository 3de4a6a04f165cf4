package expr

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// Bounds of what an expression has the engine do. It looks for the end of its context between series and
// between functions, and allocates for the steps of a subquery before it counts them.
const (
	// maxSubquerySteps bounds the steps of all subqueries together: 16 bytes each at once.
	maxSubquerySteps = 200_000
	// MaxVisits bounds how often a function looks at points of one series: once for each step and each point in
	// its range. 200 million take a second or two.
	MaxVisits = 200_000_000
	// maxSelectors bounds the selectors: each is a few statements for ClickHouse, some 50 ms.
	// One that is repeated counts, and is read once.
	maxSelectors = 100
	// maxOperators bounds operators and calls: each makes tables of its own for all steps and series.
	maxOperators = 1000
	// maxGrowth bounds how many times as long functions make labels, one inside the other: label_join(x, "a", "", "a", "a")
	// doubles one. maxLabelText bounds the text that each gives.
	maxGrowth    = 16
	maxLabelText = 1024
	// SubqueryStep is the step of a subquery that names none.
	SubqueryStep = time.Minute
)

// Cost is what an expression comes to.
type Cost struct {
	steps, visits        int64
	selectors, operators int
	// Growth is how many times as long functions make a label, Text the longest text that they add to one.
	Growth, Text int
}

// CostOf counts what an expression comes to over a range of time, in steps; 0 for an instant. The error
// says what is beyond its bound.
func CostOf(expr parser.Expr, over, step time.Duration) (Cost, error) {
	c := Cost{Growth: 1}
	c.add(expr, over, step, 1)
	switch {
	case c.steps > maxSubquerySteps:
		return c, fmt.Errorf("its subqueries come to %d steps, the limit is %d; give them longer steps, or take a shorter range", c.steps, maxSubquerySteps)
	case c.visits > MaxVisits:
		return c, fmt.Errorf("a function over a subquery looks at %d points of each series, the limit is %d; give it longer steps, or take a shorter range", c.visits, MaxVisits)
	case c.selectors > maxSelectors:
		return c, fmt.Errorf("it has %d selectors, the limit is %d; ask in several queries, or select by a regular expression", c.selectors, maxSelectors)
	case c.operators > maxOperators:
		return c, fmt.Errorf("it has %d operators and functions, the limit is %d; ask in several queries", c.operators, maxOperators)
	case c.Growth > maxGrowth:
		return c, fmt.Errorf("its functions make labels up to %d times as long, the limit is %d; nest fewer label_join and label_replace", c.Growth, maxGrowth)
	case c.Text > maxLabelText:
		return c, fmt.Errorf("a text that it makes labels of has %d bytes, the limit is %d", c.Text, maxLabelText)
	}
	return c, nil
}

// add counts a node, evaluated over a range of time in steps, whose labels are made so many times as long
// by what is around it.
func (c *Cost) add(node parser.Node, over, step time.Duration, growth int) {
	switch n := node.(type) {
	case *parser.VectorSelector:
		c.selectors++
	case *parser.SubqueryExpr:
		c.visits = max(c.visits, product(steps(over, step), steps(n.Range, stepOf(n))))
		if over, step = longer(over, n.Range), stepOf(n); n.Timestamp != nil || n.StartOrEnd != 0 {
			over = n.Range
		}
		c.steps = min(c.steps+steps(over, step), 1<<60)
	case *parser.BinaryExpr, *parser.AggregateExpr, *parser.UnaryExpr:
		c.operators++
	case *parser.Call:
		c.operators++
		growth = min(growth*c.labels(n), 1<<20)
		c.Growth = max(c.Growth, growth)
	}
	for child := range parser.ChildrenIter(node) {
		c.add(child, over, step, growth)
	}
}

// labels returns how many times as long as it was a call can make a label.
func (c *Cost) labels(n *parser.Call) int {
	if n.Func == nil || n.Func.Name != "label_join" && n.Func.Name != "label_replace" {
		return 1
	}
	for _, arg := range n.Args[1:] {
		if text, ok := arg.(*parser.StringLiteral); ok {
			c.Text = max(c.Text, len(text.Val))
		}
	}
	if n.Func.Name == "label_join" { // of a vector, the label, what is between, and the labels that are joined
		return max(1, len(n.Args)-3)
	}
	if text, ok := n.Args[2].(*parser.StringLiteral); ok {
		return max(1, strings.Count(text.Val, "$"))
	}
	return 1
}

func stepOf(n *parser.SubqueryExpr) time.Duration {
	if n.Step > 0 {
		return n.Step
	}
	return SubqueryStep
}

// longer is the sum of two ranges, as far as there are such.
func longer(a, b time.Duration) time.Duration { return a + min(b, math.MaxInt64-a) }

// steps is how many instants a range has.
func steps(over, step time.Duration) int64 {
	if step <= 0 {
		return 1
	}
	return int64(over/step) + 1
}

// product is that of two counts, as far as it can be told.
func product(a, b int64) int64 {
	if a > 1<<31 || b > 1<<31 {
		return 1 << 60
	}
	return a * b
}
