package exposition

import (
	"io"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/timers"
)

// MaxGroups bounds the groups of a family: a page of 200 groups is some 200 KB.
const MaxGroups = 200

// OtherGroup is the group of all above MaxGroups.
const OtherGroup = dispatch.OtherGroup

// Group are metrics of some names.
type Group []*dto.MetricFamily

// Topic is what the front has of a topic.
type Topic struct {
	Name   string
	Groups []timers.Status
}

// Front returns the metrics of what the front holds.
func Front(topics []Topic) Group {
	pending := gauge("almanac_timers_pending", "Timers that wait for their time or their next attempt.")
	firing := gauge("almanac_timers_firing", "Timers that a dispatcher has claimed and calls.")
	overdue := gauge("almanac_timers_overdue", "Pending timers past their due time.")
	oldest := gauge("almanac_timers_oldest_overdue_seconds", "How long the first overdue timer has been due.")
	paused := gauge("almanac_timers_group_paused", "1 where calls of the group are paused.")
	largest := gauge("almanac_timers_largest_slot_ratio", "Pending timers of the fullest slot over the mean of all slots: 1 is even.")
	add := adder(pending, firing, overdue, oldest)
	var other timers.Status
	n := 0
	for _, t := range sorted(topics, func(a, b Topic) int { return strings.Compare(a.Name, b.Name) }) {
		for _, g := range sorted(t.Groups, func(a, b timers.Status) int { return strings.Compare(a.Group, b.Group) }) {
			if n++; n > MaxGroups {
				other.Pending += g.Pending
				other.Firing += g.Firing
				other.Overdue += g.Overdue
				other.OldestSeconds = max(other.OldestSeconds, g.OldestSeconds)
				continue
			}
			in := labels("topic", t.Name, "group", g.Group)
			add(in, g.Pending, g.Firing, g.Overdue, g.OldestSeconds)
			paused.add(map[bool]float64{true: 1}[g.Paused], in)
			largest.add(g.LargestSlot, in)
		}
	}
	if n > MaxGroups {
		add(labels("topic", "", "group", OtherGroup), other.Pending, other.Firing, other.Overdue, other.OldestSeconds)
	}
	return groups(pending, firing, overdue, oldest, paused, largest)
}

// Dispatcher returns the metrics of one dispatcher.
func Dispatcher(waiting []dispatch.Waiting, s dispatch.Stats) Group {
	pending := gauge("almanac_dispatcher_pending", "Timers of this dispatcher's lanes that wait for their time or their next attempt.")
	blocked := gauge("almanac_dispatcher_blocked", "Those of them that are due and find no free place: the dispatcher, their host or their group is at its bound, or the group is paused.")
	overdue := gauge("almanac_dispatcher_overdue", "Those of them that are past their due time.")
	oldest := gauge("almanac_dispatcher_oldest_overdue_seconds", "How long the first of them has been due.")
	largest := gauge("almanac_dispatcher_largest_slot_ratio", "Pending timers of the fullest slot over the mean of the slots in this dispatcher's lanes: 1 is even.")
	add := adder(pending, blocked, overdue, oldest)
	var other dispatch.Waiting
	for i, w := range waiting {
		if i >= MaxGroups {
			other.Pending += w.Pending
			other.Blocked += w.Blocked
			other.Overdue += w.Overdue
			other.Oldest = max(other.Oldest, w.Oldest)
			continue
		}
		in := labels("topic", w.Topic, "group", w.Group)
		add(in, w.Pending, w.Blocked, w.Overdue, w.Oldest.Seconds())
		largest.add(w.LargestSlot, in)
	}
	if len(waiting) > MaxGroups {
		add(labels("topic", "", "group", OtherGroup), other.Pending, other.Blocked, other.Overdue, other.Oldest.Seconds())
	}
	calls := counter("almanac_dispatcher_calls_total", "Attempts that ended since the start, by result: done, failed, retry or rescheduled.")
	for _, c := range s.Calls {
		calls.add(float64(c.Count), labels("topic", c.Topic, "group", c.Group, "result", string(c.Result)))
	}
	errors := counter("almanac_dispatcher_call_errors_total", "Attempts that did not succeed since the start, by what went wrong.")
	for _, e := range slices.Sorted(maps.Keys(s.Errors)) {
		errors.add(float64(s.Errors[e]), labels("error", e))
	}
	return groups(pending, blocked, overdue, oldest, largest, calls, errors)
}

// adder returns a function that adds to each of the families of groups what one group has.
func adder(pending, at, overdue, oldest *metricGroup) func(in []*dto.LabelPair, p, a, o int, seconds float64) {
	return func(in []*dto.LabelPair, p, a, o int, seconds float64) {
		pending.add(float64(p), in)
		at.add(float64(a), in)
		overdue.add(float64(o), in)
		oldest.add(seconds, in)
	}
}

// Write writes families as text.
func Write(w io.Writer, all Group) error {
	for _, f := range all {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

type metricGroup struct{ dto.MetricFamily }

func gauge(name, help string) *metricGroup {
	return &metricGroup{dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()}}
}

func counter(name, help string) *metricGroup {
	return &metricGroup{dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_COUNTER.Enum()}}
}

func (f *metricGroup) add(v float64, in []*dto.LabelPair) {
	m := &dto.Metric{Label: in}
	if f.GetType() == dto.MetricType_COUNTER {
		m.Counter = &dto.Counter{Value: &v}
	} else {
		m.Gauge = &dto.Gauge{Value: &v}
	}
	f.Metric = append(f.Metric, m)
}

// groups leaves out those without a metric.
func groups(all ...*metricGroup) (out Group) {
	for _, f := range all {
		if len(f.Metric) > 0 {
			out = append(out, &f.MetricFamily)
		}
	}
	return out
}

// labels are pairs of name and value.
func labels(pairs ...string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, 0, len(pairs)/2)
	for p := range slices.Chunk(pairs, 2) {
		out = append(out, &dto.LabelPair{Name: &p[0], Value: &p[1]})
	}
	return out
}

func sorted[T any](all []T, by func(a, b T) int) []T {
	return slices.SortedFunc(slices.Values(all), by)
}
