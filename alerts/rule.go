package alerts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/forms"
	"github.com/almanac-events/almanac/internal/alerts/texts"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of rules. Docs/limits.md has the reasons.
const (
	MaxGroups      = 200
	MaxRules       = 2000
	MaxReceivers   = 20
	MaxGroupBytes  = 256 << 10
	MaxNameBytes   = 200
	MaxNames       = 64 // of labels, and of annotations: an event has schemas.MaxAttrs attributes
	MaxTextBytes   = 4 << 10
	MaxWindow      = 24 * time.Hour
	MaxTopics      = 100
	MaxTopicAlerts = 2000
)

// Span is a length of time as people write it: 15m, 1d.
type Span time.Duration

// MarshalText writes it so that ParseSpan reads it.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText reads it.
func (s *Span) UnmarshalText(text []byte) error {
	d, ok := schemas.ParseSpan(string(text))
	if !ok {
		return fmt.Errorf("%q is not a length of time, such as 15m", text)
	}
	*s = Span(d)
	return nil
}

// Group is rules that are declared together.
type Group struct {
	Name string `json:"name" yaml:"name"`
	// Topic is of the rules that name none.
	Topic string `json:"topic,omitempty" yaml:"topic"`
	// Interval and QueryOffset are of the rules over an expression or a meter that have none, and Labels of all rules that
	// lack them.
	Interval    Span              `json:"interval,omitempty" yaml:"interval"`
	QueryOffset Span              `json:"query_offset,omitempty" yaml:"query_offset"`
	Labels      map[string]string `json:"labels,omitempty" yaml:"labels"`
	// Limit is how many series a rule over an expression may have at an instant; 0: as many as any rule.
	Limit     int        `json:"limit,omitempty" yaml:"limit"`
	Rules     []Rule     `json:"rules" yaml:"rules"`
	Receivers []Receiver `json:"receivers,omitempty" yaml:"receivers"`
}

// Rule says which count of events, which series of an expression or which usage of a meter makes an alert.
type Rule struct {
	// Alert names what the rule makes alerts of; Record names the metric that it writes in place of that: the value of each series of
	// its expression, into its topic.
	Alert  string `json:"alert,omitempty" yaml:"alert"`
	Record string `json:"record,omitempty" yaml:"record"`
	Topic  string `json:"topic,omitempty" yaml:"topic"`
	// Where selects the events that count, in the language of filters; empty: all.
	Where string `json:"where,omitempty" yaml:"where"`
	// Window is over how long they are counted, and Condition what of their count makes an alert, such as ">= 5".
	Window    Span   `json:"window,omitempty" yaml:"window"`
	Condition string `json:"condition,omitempty" yaml:"condition"`
	// Silence is short for a window in which no event came.
	Silence Span `json:"silence,omitempty" yaml:"silence"`
	// Expr is an expression of Prometheus's language over a topic of kind metric, in place of all that counts: each series
	// that it has at an instant is an alert.
	Expr string `json:"expr,omitempty" yaml:"expr"`
	// Meter is a meter of a topic of kind meter, and Measure what of it Condition is asked of: its sum or count within Window, or
	// its size.
	Meter   string `json:"meter,omitempty" yaml:"meter"`
	Measure string `json:"measure,omitempty" yaml:"measure"`
	// Unusual is how many deviations from its median a meter's sum or count may be, in place of Condition. The median is of the same
	// window on each of as many Days before. Least is the smallest distance that counts.
	Unusual float64 `json:"unusual,omitempty" yaml:"unusual"`
	Days    int     `json:"days,omitempty" yaml:"days"`
	Least   float64 `json:"least,omitempty" yaml:"least"`
	// Interval is from one instant to the next at which an expression or a meter is asked for, and QueryOffset how far before
	// the instant an expression is evaluated.
	Interval    Span `json:"interval,omitempty" yaml:"interval"`
	QueryOffset Span `json:"query_offset,omitempty" yaml:"query_offset"`
	// By makes an alert of each value of a field. Events that lack it do not count.
	By string `json:"by,omitempty" yaml:"by"`
	// For is how long the condition must hold, and KeepFiringFor how long it may fail before the alert ends.
	For           Span              `json:"for,omitempty" yaml:"for"`
	KeepFiringFor Span              `json:"keep_firing_for,omitempty" yaml:"keep_firing_for"`
	Labels        map[string]string `json:"labels,omitempty" yaml:"labels"`
	Annotations   map[string]string `json:"annotations,omitempty" yaml:"annotations"`
	// Notify names receivers of the group; none: all of them.
	Notify []string `json:"notify,omitempty" yaml:"notify"`
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// condition reads "OP NUMBER".
func (r *Rule) condition() (decide.Condition, error) {
	if r.Silence > 0 {
		return decide.Condition{Op: "<", Limit: 1}, nil
	}
	text := strings.TrimSpace(r.Condition)
	for _, op := range decide.Ops {
		if rest, ok := strings.CutPrefix(text, op); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				break
			}
			return decide.Condition{Op: op, Limit: n}, nil
		}
	}
	return decide.Condition{}, fmt.Errorf("condition: %q; expected a comparison and a number, such as \">= 5\"", r.Condition)
}

// Span is the window that counts.
func (r *Rule) Span() time.Duration { return time.Duration(max(r.Window, r.Silence)) }

// Decided is the rule as it is evaluated.
func (r *Rule) Decided() decide.Rule {
	c, _ := r.condition() // Validate read it
	return decide.Rule{Condition: c, Grouped: r.GroupsBy() != "", For: time.Duration(r.For), Keep: time.Duration(r.KeepFiringFor)}
}

// GroupsBy is what there is an alert for each value of: the field, decide.BySeries, or empty.
func (r *Rule) GroupsBy() string {
	if r.Expr != "" {
		return decide.BySeries
	}
	return r.By
}

// Sum names what the rule means: rules of one sum are evaluated alike.
func (r *Rule) Sum() string {
	of := *r
	of.Annotations, of.Notify, of.Interval = nil, nil, 0
	if r.Record == "" { // else they are of the series that it writes
		of.Labels = nil
	}
	text, _ := json.Marshal(of)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Hidden returns the group without what its receivers are called with: an address after its host and a routing key are secrets.
func (g *Group) Hidden() Group {
	out := *g
	out.Receivers = slices.Clone(g.Receivers)
	for i := range out.Receivers {
		out.Receivers[i].hide()
	}
	return out
}

// Validate completes a group by its defaults, and refuses what cannot be without asking any server.
func (g *Group) Validate() error {
	if g.Name == "" || len(g.Name) > MaxNameBytes {
		return g.refuse(nil, "a group has a name of 1 to %d bytes", MaxNameBytes)
	}
	if g.Name == "." || g.Name == ".." {
		return g.refuse(nil, "no path over HTTP leads to a group of that name; give it another")
	}
	if len(g.Receivers) > MaxReceivers {
		return g.refuse(nil, "%d receivers; the limit is %d", len(g.Receivers), MaxReceivers)
	}
	if g.Limit < 0 {
		return g.refuse(nil, "limit: %d; expected how many series a rule may have, 0 for %d", g.Limit, decide.MaxGroups)
	}
	names := map[string]bool{}
	for i := range g.Receivers {
		r := &g.Receivers[i]
		if err := r.validate(); err != nil {
			return g.refuse(nil, "receiver %q: %v", r.Name, err)
		}
		if names[r.Name] {
			return g.refuse(nil, "receiver %q is there twice", r.Name)
		}
		names[r.Name] = true
	}
	seen := map[string]bool{}
	for i := range g.Rules {
		r := &g.Rules[i]
		r.complete(g)
		if r.Asked() && r.Record == "" {
			r.distinct(seen)
		}
		if err := r.validate(names); err != nil {
			return g.refuse(r, "%v", err)
		}
		if name := r.varies(); name != "" && r.Record == "" && g.tells(r, forms.Alertmanager) {
			return g.refuse(r, "label %q has the value of the alert, and Alertmanager knows an alert by its labels: it would never hear that this one ended. Make it an annotation", name)
		}
		if g.Limit > 0 && r.Expr == "" {
			return g.refuse(r, "limit is of groups whose rules are over an expression (expr); put the others into a group of their own")
		}
		name := r.Alert
		if r.Record != "" { // several may record one metric, each with labels of its own
			name = "record " + r.AskedKey(g.Name)
		}
		if seen[name] {
			return g.refuse(r, "the group has two rules of that name")
		}
		seen[name] = true
	}
	if text, err := json.Marshal(g); err != nil || len(text) > MaxGroupBytes {
		return g.refuse(nil, "it has %d bytes as JSON; the limit is %d. Make several groups of it", len(text), MaxGroupBytes)
	}
	return nil
}

// tells reports whether a receiver of a form is told of a rule.
func (g *Group) tells(r *Rule, form string) bool {
	return slices.ContainsFunc(g.Receivers, func(c Receiver) bool {
		return c.Form == form && (len(r.Notify) == 0 || slices.Contains(r.Notify, c.Name))
	})
}

// varies is a label that differs between the beginning of an alert and its end; empty: none does.
func (r *Rule) varies() string {
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		if t, err := texts.New(r.Labels[name]); err == nil && t.Varies {
			return name
		}
	}
	return ""
}

func (g *Group) refuse(r *Rule, format string, a ...any) error {
	of := fmt.Sprintf("group %q", g.Name)
	if r != nil {
		of += fmt.Sprintf(", rule %q", r.Title())
	}
	return fmt.Errorf("%w: %w: %s: %s", schemas.ErrRequest, ErrRule, of, fmt.Sprintf(format, a...))
}

func (r *Rule) validate(receivers map[string]bool) error {
	if r.Record != "" {
		if err := r.validateRecord(); err != nil {
			return err
		}
	}
	switch {
	case r.Record == "" && (r.Alert == "" || len(r.Alert) > MaxNameBytes):
		return fmt.Errorf("alert: expected a name of 1 to %d bytes", MaxNameBytes)
	case len(r.By) > MaxNameBytes: // it becomes a label, whose name is a part of an attribute's
		return fmt.Errorf("by: %.40q has %d bytes; the limit is %d", r.By, len(r.By), MaxNameBytes)
	case r.Topic == "":
		return fmt.Errorf("topic is missing, at the rule and at its group")
	case r.Asked():
		if err := r.validateAsked(); err != nil {
			return err
		}
	case r.Measure != "" || r.Interval > 0 || r.QueryOffset > 0:
		return fmt.Errorf("measure, interval and query_offset are of rules over an expression (expr) or a meter; this one counts events, each second")
	case r.unusual():
		return fmt.Errorf("unusual, days and least are of rules over a meter; this one counts events")
	case (r.Silence > 0) == (r.Window > 0):
		return fmt.Errorf("expected either window and condition, or silence")
	case r.Silence > 0 && r.Condition != "":
		return fmt.Errorf("silence has no condition: it is that nothing came")
	case r.Span() < decide.Step || r.Span() > MaxWindow:
		return fmt.Errorf("window: %s; expected %s to %s", r.Span(), decide.Step, MaxWindow)
	}
	if time.Duration(r.For) > MaxWindow || time.Duration(r.KeepFiringFor) > MaxWindow {
		return fmt.Errorf("for and keep_firing_for: expected at most %s", MaxWindow)
	}
	if _, err := r.condition(); err != nil && r.Expr == "" && !r.unusual() {
		return err
	}
	size := 0
	for _, all := range []map[string]string{r.Labels, r.Annotations} {
		if len(all) > MaxNames {
			return fmt.Errorf("%d labels or annotations; the limit is %d of each", len(all), MaxNames)
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !labelName.MatchString(name) || len(name) > MaxNameBytes {
				return fmt.Errorf("label or annotation %.40q: expected letters, digits and _, at most %d bytes", name, MaxNameBytes)
			}
			if _, err := texts.New(all[name]); err != nil && r.Record == "" {
				return fmt.Errorf("label or annotation %q: %w", name, err)
			}
			size += len(name) + len(all[name])
		}
	}
	if size > MaxTextBytes {
		return fmt.Errorf("labels and annotations have %d bytes; the limit is %d", size, MaxTextBytes)
	}
	for _, name := range r.Notify {
		if !receivers[name] {
			return fmt.Errorf("notify: the group has no receiver %q", name)
		}
	}
	return nil
}

// Compiled is a rule for a topic as it is.
type Compiled struct {
	Where *filter.Expr
	// Column is of By; empty: Attribute is.
	Column, Attribute string
}

// Compile reads a rule's filter and field for a topic.
func (r *Rule) Compile(t *schemas.Topic) (*Compiled, error) {
	if t.Front() != "" {
		return nil, fmt.Errorf("topic %q is of kind %s, whose events are evaluated by no rule yet", t.Name, t.Kind)
	}
	if r.Record != "" && t.NeedsPrivacyKey() {
		return nil, fmt.Errorf("topic %q has a privacy rule that hashes, and what a rule records would be hashed again: an erasure would not find it", t.Name)
	}
	if r.Asked() {
		return &Compiled{}, r.ofKind(t)
	}
	where, err := filter.Parse(r.Where, t)
	if err != nil {
		return nil, err
	}
	c := &Compiled{Where: where}
	if r.By == "" {
		return c, nil
	}
	if key, ok := strings.CutPrefix(r.By, schemas.ColAttributes+"."); ok && key != "" {
		c.Attribute = key
		return c, nil
	}
	for _, f := range filter.ColumnsOf(t) {
		if f.Name == r.By && f.Text {
			c.Column = f.Name
			return c, nil
		}
	}
	return nil, fmt.Errorf("by: topic %q has no field of text %q; an attribute is attributes.NAME", t.Name, r.By)
}
