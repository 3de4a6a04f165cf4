package expr

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What would have the engine allocate or work without an end is refused, and what people ask is not.
func TestCostOf(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		expr       string
		over, step time.Duration
		says       string
	}{
		"a usual subquery":            {"max_over_time(rate(up[5m])[1h:1m])", 0, 0, ""},
		"seconds of a day":            {"max_over_time(up[1d:1s])", 0, 0, ""},
		"without a step":              {"max_over_time(up[30d:])", 0, 0, ""},
		"nested":                      {"max_over_time(avg_over_time(up[1h:1m])[1d:1m])", 0, 0, ""},
		"over a month":                {"max_over_time(rate(up[5m])[1h:1m])", 30 * day, time.Hour, ""},
		"at an instant, over a year":  {"max_over_time(up[1d:1m] @ 1770000000)", 365 * day, day, ""},
		"many sums":                   {"1" + strings.Repeat(" + 1", 900), 0, 0, ""},
		"labels":                      {`label_join(label_replace(up, "a", "$1-$2", "b", "(.*):(.*)"), "c", "/", "a", "b", "d")`, 0, 0, ""},
		"milliseconds of ten years":   {"max_over_time(up[10y:1ms])", 0, 0, "315360000001 steps, the limit is 200000"},
		"of a constant":               {"max_over_time(vector(1)[100y:1s])", 0, 0, "its subqueries come to"},
		"the longest there is":        {"max_over_time(max_over_time(up[290y:1ms])[290y:1ms])", 290 * 365 * day, time.Millisecond, "its subqueries come to"},
		"a short one over years":      {"max_over_time(up[1h:1ms])", 10 * 365 * day, day, "its subqueries come to"},
		"alone":                       {"up[10y:1ms]", 0, 0, "its subqueries come to"},
		"in a sum":                    {"1 + sum(-(max_over_time(up[10y:1s])))", 0, 0, "its subqueries come to"},
		"many small ones":             {strings.Repeat("max_over_time(up[1d:1s]) + ", 2) + "max_over_time(up[1d:1s])", 0, 0, "its subqueries come to"},
		"nested in seconds":           {"max_over_time(max_over_time(up[12h:1s])[12h:1s])", 0, 0, "looks at"},
		"seconds of a day, each step": {"quantile_over_time(0.9, up[1d:1s])", 11_000 * time.Second, time.Second, "looks at 950497401 points of each series"},
		"a thousand selectors":        {"up" + strings.Repeat(" or up", 1000), 0, 0, "it has 1001 selectors, the limit is 100"},
		"a thousand operators":        {"vector(1)" + strings.Repeat(" or vector(1)", 600), 0, 0, "operators and functions, the limit is 1000"},
		"labels that double":          {doubled("label_join", 40), 0, 0, "make labels up to"},
		"by a replacement":            {doubled("label_replace", 40), 0, 0, "make labels up to"},
		"a long text":                 {`label_replace(up, "a", "` + strings.Repeat("x", 2000) + `", "", "")`, 0, 0, "a text that it makes labels of has 2000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expr, err := Parser().ParseExpr(c.expr)
			if err != nil {
				t.Fatal(err)
			}
			_, err = CostOf(expr, c.over, c.step)
			if (c.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// doubled is an expression that makes a label 2^n times as long.
func doubled(by string, n int) string {
	expr := `label_replace(vector(1), "a", "0123456789", "", "")`
	for range n {
		if by == "label_join" {
			expr = fmt.Sprintf(`label_join(%s, "a", "", "a", "a")`, expr)
		} else {
			expr = fmt.Sprintf(`label_replace(%s, "a", "$1$1", "a", "(.*)")`, expr)
		}
	}
	return expr
}
