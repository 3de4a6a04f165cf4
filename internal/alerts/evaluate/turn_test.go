package evaluate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/almanac-events/almanac/alerts"
)

// recording is a run of rules that record, which nothing has evaluated yet.
func recording(e *Evaluator, exprs ...string) *run {
	r := &run{e: e, end: func() {}}
	for _, text := range exprs {
		rule := &alerts.Rule{Record: "m", Expr: text, Topic: "metrics", Interval: alerts.Span(time.Second)}
		r.rules = append(r.rules, &ruleRun{bound: bound{group: &alerts.Group{Name: "g"}, rule: rule}})
	}
	return r
}

// unserved is an evaluator that has no servers.
func unserved() *Evaluator {
	return &Evaluator{cfg: Config{Hooks: Hooks{Fault: func(string, error) {}, Recorded: func(string, int, error) {}}}, runs: map[string]*run{}, last: map[string]map[string]lastRecorded{}}
}

// overdue is a context whose time is over once that is said.
type overdue struct {
	context.Context
	over chan struct{}
}

func (o *overdue) Err() error {
	select {
	case <-o.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestLeftOver holds that rules for which the time of a batch was too short say so, and that the next one begins with the first of them.
func TestLeftOver(t *testing.T) {
	t.Parallel()
	r := recording(unserved(), "a", "b", "c", "d")
	wrong := errors.New("no such metric")
	ctx := &overdue{t.Context(), make(chan struct{})}
	due := r.due(time.Now().UnixNano())
	inTurn(ctx, due, func(i int) error {
		switch i {
		case 0:
			return wrong
		case 2: // slow
			close(ctx.over)
			return ctx.Err()
		}
		return nil
	})
	for i, want := range []error{wrong, nil, errLeft, errLeft} {
		if !errors.Is(due[i].err, want) {
			t.Errorf("rule %d: %v, want %v", i, due[i].err, want)
		}
	}
	r.answers = make(chan []answer, 1)
	r.answers <- due
	if err := r.answered(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := r.rules[2].asked.Error; !strings.Contains(text, "left over") || !strings.HasPrefix(errLeft.Error(), strings.TrimSuffix(text, "…")) {
		t.Errorf("the status says %q", text)
	}
	var order []string
	for _, a := range r.due(time.Now().Add(2 * time.Second).UnixNano()) {
		order = append(order, a.rr.rule.Expr)
	}
	if want := []string{"c", "d", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("the next are asked for as %q, want %q", order, want)
	}
	r.answers = make(chan []answer, 1)
	r.answers <- []answer{{rr: r.rules[0]}}
	if err := r.answered(t.Context()); err != nil || r.first != 0 {
		t.Errorf("after a batch that was whole rule %d comes first, %v", r.first, err)
	}
}

// TestRecordedIsCarriedOver holds that a run that is loaded again knows what its rules recorded, unless they mean something else or another
// process had the topic.
func TestRecordedIsCarriedOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exprs   []string
		between func(e *Evaluator)
		want    []bool
	}{
		"read again":            {exprs: []string{"a", "b"}, want: []bool{true, true}},
		"one is changed":        {exprs: []string{"a", "c"}, want: []bool{true, false}},
		"one is before them":    {exprs: []string{"c", "a", "b"}, want: []bool{false, true, true}},
		"a load that failed":    {exprs: []string{"a", "b"}, between: func(e *Evaluator) { e.unload("metrics") }, want: []bool{true, true}},
		"another has the topic": {exprs: []string{"a", "b"}, between: func(e *Evaluator) { e.drop("metrics") }, want: []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := unserved()
			first := recording(e, "a", "b")
			for _, rr := range first.rules {
				rr.lastRecorded = lastRecorded{recorded{"{}": {}}, "none"}
			}
			e.runs["metrics"] = first
			e.unload("metrics")
			if c.between != nil {
				c.between(e)
			}
			next := recording(e, c.exprs...)
			e.enter("metrics", next)
			for i, want := range c.want {
				if has := next.rules[i].erased == "none" && len(next.rules[i].recorded) == 1; has != want {
					t.Errorf("rule %q: %t, want %t", c.exprs[i], has, want)
				}
			}
			if e.runs["metrics"] != next || len(e.last) > 0 {
				t.Errorf("the run is %p, want %p; %v is kept", e.runs["metrics"], next, e.last)
			}
		})
	}
}

// TestRecordedInPart holds that after a write that failed both what was recorded before and what may be recorded since can end.
func TestRecordedInPart(t *testing.T) {
	t.Parallel()
	of := func(v float64, hosts ...string) recorded {
		out := recorded{}
		for _, h := range hosts {
			l := labels.FromStrings("host", h)
			out[l.String()] = sampleOf{l, v}
		}
		return out
	}
	both := of(2, "b", "c").with(of(1, "a", "b"))
	if names := slices.Sorted(maps.Keys(both)); len(names) != 3 || both[`{host="b"}`].value != 2 {
		t.Errorf("together they are %v", both)
	}
	r := recording(unserved(), "a")
	samples, failed := 0, 0
	r.e.cfg.Hooks.Recorded = func(_ string, n int, err error) {
		if samples += n; err != nil {
			failed++
		}
	}
	rr := r.rules[0]
	rr.lastRecorded = lastRecorded{of(1, "a"), "none"}
	for _, c := range []struct {
		a    answer
		want int
	}{
		{answer{rr: rr, err: errors.New("ClickHouse is away")}, 1},
		{answer{rr: rr, err: errors.New("the stream is full"), now: both, erased: "none"}, 3},
		{answer{rr: rr, now: of(1, "c"), erased: "none", wrote: 1}, 1},
		{answer{rr: rr, erased: "none", wrote: 5000}, 0}, // they are too many to be kept
	} {
		if err := r.resolve(t.Context(), &c.a); err != nil || len(rr.recorded) != c.want {
			t.Errorf("after %v it knows %d series, want %d: %v", c.a.err, len(rr.recorded), c.want, err)
		}
	}
	if samples != 5001 || failed != 2 {
		t.Errorf("%d samples are counted, and %d instants that failed", samples, failed)
	}
}

// TestBindLeavesOut holds that a rule which no longer fits its topic is left out and named, and that the others go on.
func TestBindLeavesOut(t *testing.T) {
	t.Parallel()
	var faults []error
	e := unserved()
	e.cfg.Hooks.Fault = func(_ string, err error) { faults = append(faults, err) }
	r := &run{e: e}
	r.topic.Name = "app"
	group := &alerts.Group{Name: "g"}
	good := &alerts.Rule{Alert: "Good", Topic: "app", Where: `level = "error"`, Window: alerts.Span(time.Hour), Condition: ">= 2"}
	gone := &alerts.Rule{Alert: "Gone", Topic: "app", Window: alerts.Span(time.Hour), Condition: ">= 2", By: "nothing"}
	unread := &alerts.Rule{Alert: "Unread", Topic: "app", Where: "type =", Window: alerts.Span(time.Hour), Condition: ">= 2"}
	if window := r.bind([]bound{{group, gone}, {group, good}, {group, unread}}); len(r.rules) != 1 || r.rules[0].rule != good || window != time.Hour {
		t.Errorf("%d rules are evaluated within %s", len(r.rules), window)
	}
	if why := errors.Join(faults...); len(faults) != 2 || !errors.Is(why, ErrLeftOut) || !strings.Contains(why.Error(), `rule "Gone"`) || !strings.Contains(why.Error(), "apply it again") {
		t.Errorf("the faults are %v", faults)
	}
}
