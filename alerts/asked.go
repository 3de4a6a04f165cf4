package alerts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/query/prometheus/expr"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Bounds of rules whose values ClickHouse is asked for. Docs/limits.md has the reasons.
const (
	MaxAsked        = 300
	MaxAskedMinute  = 600 // evaluations of all such rules
	DefaultInterval = time.Minute
	MaxInterval     = time.Hour
	MaxUsageWindow  = 31 * 24 * time.Hour
	MaxExprBytes    = 16 << 10

	// Of what is usual: how many days before are looked at, how many deviations are the most, and the longest window, so that those of
	// two days are beside each other.
	DefaultDays      = 7
	MinDays          = 3
	MaxDays          = 28
	MaxUnusual       = 1000
	MaxUnusualWindow = 24 * time.Hour
)

// Measures of a rule over a meter.
const (
	MeasureSum   = "sum"
	MeasureCount = "count"
	MeasureSize  = "size"
)

// Measures lists them, the default first.
var Measures = []string{MeasureSum, MeasureCount, MeasureSize}

// usageFields are those of a meter's diffs that a rule may group by.
var usageFields = []string{kinds.ColProvider, kinds.ColSpace, schemas.ColUserID}

// Asked reports whether the rule's values are asked for, and not counted as events come.
func (r *Rule) Asked() bool { return r.Expr != "" || r.Meter != "" }

// complete gives a rule what its group has for all.
func (r *Rule) complete(g *Group) {
	r.Topic = cmp.Or(r.Topic, g.Topic)
	if len(g.Labels) > 0 {
		all := maps.Clone(g.Labels)
		maps.Copy(all, r.Labels)
		r.Labels = all
	}
	if !r.Asked() {
		return
	}
	r.Interval = cmp.Or(r.Interval, g.Interval, Span(DefaultInterval))
	if r.Expr != "" {
		r.QueryOffset = cmp.Or(r.QueryOffset, g.QueryOffset)
	}
	if r.Meter != "" {
		r.Measure = cmp.Or(r.Measure, MeasureSum)
	}
	if r.Unusual != 0 {
		r.Days = cmp.Or(r.Days, DefaultDays)
	}
}

// distinct gives a rule a name of its own in its group, as Prometheus's files have several of one name. They keep that name as
// their label.
func (r *Rule) distinct(seen map[string]bool) {
	name := r.Alert
	for n := 2; seen[r.Alert]; n++ {
		r.Alert = fmt.Sprintf("%s (%d)", name, n)
	}
	if r.Alert != name && r.Labels[alertName] == "" {
		all := maps.Clone(r.Labels)
		if all == nil {
			all = map[string]string{}
		}
		all[alertName] = name
		r.Labels = all
	}
}

// alertName is the label that has an alert's name.
const alertName = "alertname"

// Name is what the rule's alerts are called, or the metric that it records.
func (r *Rule) Name() string {
	if r.Record != "" {
		return r.Record
	}
	return cmp.Or(r.Labels[alertName], r.Alert)
}

// Title is what messages call the rule: its name in its group, or the metric that it records.
func (r *Rule) Title() string { return cmp.Or(r.Alert, r.Record) }

// validateAsked refuses what cannot be of a rule whose values are asked for.
func (r *Rule) validateAsked() error {
	every := time.Duration(r.Interval)
	switch {
	case r.Silence > 0 || r.Where != "":
		return fmt.Errorf("where and silence are of rules that count events; this one is over an expression (expr) or a meter")
	case every < decide.Step || every > MaxInterval || every%decide.Step != 0:
		return fmt.Errorf("interval: %s; expected whole seconds, %s to %s", every, decide.Step, MaxInterval)
	case r.Expr != "":
		return r.validateExpr()
	case !slices.Contains(Measures, r.Measure):
		return fmt.Errorf("measure: %q; expected %s", r.Measure, strings.Join(Measures, ", "))
	case r.QueryOffset > 0:
		return fmt.Errorf("query_offset is of rules over an expression (expr)")
	case r.Measure == MeasureSize && r.Window > 0:
		return fmt.Errorf("a size is at an instant: take window away, or take the measure %s", MeasureSum)
	case r.Measure != MeasureSize && (r.Span() < decide.Step || r.Span() > MaxUsageWindow):
		return fmt.Errorf("window: %s; expected %s to %s", r.Span(), decide.Step, MaxUsageWindow)
	}
	if r.By != "" && !slices.Contains(usageFields, r.By) {
		return fmt.Errorf("by: %q; a rule over a meter takes %s", r.By, strings.Join(usageFields, ", "))
	}
	if r.unusual() {
		return r.validateUnusual()
	}
	return nil
}

// unusual reports whether the rule is about what is usual.
func (r *Rule) unusual() bool { return r.Unusual != 0 || r.Days != 0 || r.Least != 0 }

// Usual is the range that a rule's values are held against; nil: its condition is.
func (r *Rule) Usual() *decide.Usual {
	if !r.unusual() {
		return nil
	}
	return &decide.Usual{Deviations: r.Unusual, Least: r.Least}
}

// Asks is how many windows are asked for at an instant.
func (r *Rule) Asks() int { return 1 + r.Days }

func (r *Rule) validateUnusual() error {
	switch {
	case r.Condition != "":
		return fmt.Errorf("expected either condition or unusual")
	case r.Measure == MeasureSize:
		return fmt.Errorf("unusual: it is of a %s or a %s within a window: a size has no such range", MeasureSum, MeasureCount)
	case !(r.Unusual >= 1 && r.Unusual <= MaxUnusual): // not a number is none of both
		return fmt.Errorf("unusual: %v; expected a number of deviations, 1 to %d", r.Unusual, MaxUnusual)
	case r.Days < MinDays || r.Days > MaxDays:
		return fmt.Errorf("days: %d; expected %d to %d", r.Days, MinDays, MaxDays)
	case !(r.Least >= 0):
		return fmt.Errorf("least: %v; expected 0 or more", r.Least)
	case r.Span() > MaxUnusualWindow:
		return fmt.Errorf("window: %s; of what is usual each day expected at most %s", r.Span(), MaxUnusualWindow)
	}
	return nil
}

func (r *Rule) validateExpr() error {
	switch {
	case r.Meter != "" || r.Measure != "":
		return fmt.Errorf("expected either expr, or meter and measure")
	case r.unusual():
		return fmt.Errorf("unusual, days and least are of rules over a meter; this one is over an expression (expr)")
	case r.Window > 0 || r.Condition != "" || r.By != "":
		return fmt.Errorf("expr has its window, condition and by in it, as sum by (job) (rate(errors_total[5m])) > 5")
	case len(r.Expr) > MaxExprBytes:
		return fmt.Errorf("expr has %d bytes; the limit is %d", len(r.Expr), MaxExprBytes)
	case time.Duration(r.QueryOffset) > MaxInterval:
		return fmt.Errorf("query_offset: %s; expected at most %s", time.Duration(r.QueryOffset), MaxInterval)
	}
	if err := expr.Check(r.Expr); err != nil {
		return fmt.Errorf("expr: %w", err)
	}
	return nil
}

// AskedKey names a rule of a group where it is written how far such rules are evaluated.
func (r *Rule) AskedKey(group string) string {
	sum := sha256.Sum256([]byte(group + "\x00" + r.Alert + "\x00" + r.Sum()))
	return hex.EncodeToString(sum[:8])
}

// Last is the last instant of the rule up to a time, unix ns. Those of a group are the same, and of different groups spread.
func (r *Rule) Last(group string, upTo int64) int64 {
	every := int64(cmp.Or(time.Duration(r.Interval), DefaultInterval))
	h := fnv.New32a()
	_, _ = h.Write([]byte(group))
	spread := int64(h.Sum32()) % (every / int64(decide.Step)) * int64(decide.Step)
	return (upTo-spread)/every*every + spread
}

// ofKind refuses a topic whose kind such a rule is not over.
func (r *Rule) ofKind(t *schemas.Topic) error {
	switch {
	case r.Expr != "" && t.Kind != kinds.Metric:
		return fmt.Errorf("topic %q is of kind %s; an expression is over a topic of kind %s", t.Name, t.Kind, kinds.Metric)
	case r.Meter != "" && t.Kind != kinds.Meter:
		return fmt.Errorf("topic %q is of kind %s; a meter is of a topic of kind %s", t.Name, t.Kind, kinds.Meter)
	}
	return nil
}
