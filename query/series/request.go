package series

import (
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Aligner makes one value of the points that a series has in a window.
type Aligner string

// The aligners. None gives the points themselves.
const (
	None    Aligner = "none"
	Delta   Aligner = "delta"
	Rate    Aligner = "rate"
	Min     Aligner = "min"
	Max     Aligner = "max"
	Mean    Aligner = "mean"
	Count   Aligner = "count"
	Sum     Aligner = "sum"
	Stddev  Aligner = "stddev"
	P99     Aligner = "p99"
	P95     Aligner = "p95"
	P50     Aligner = "p50"
	P05     Aligner = "p05"
	Summary Aligner = "summary"
)

// Aligners lists the aligners, for messages and help.
var Aligners = []Aligner{None, Delta, Rate, Min, Max, Mean, Count, Sum, Stddev, P99, P95, P50, P05, Summary}

// Reducers lists the reducers: the same words, without those of counters.
var Reducers = []Aligner{None, Mean, Min, Max, Sum, Stddev, Count, P99, P95, P50, P05, Summary}

// percentiles are the levels of the aligners that are one.
var percentiles = map[Aligner]string{P99: "0.99", P95: "0.95", P50: "0.5", P05: "0.05"}

// Bounds of a read.
const (
	// MinPeriod is the shortest period; periods are multiples of it.
	MinPeriod = time.Minute
	// MaxPeriod is a year.
	MaxPeriod = 366 * 24 * time.Hour
	// MaxPoints bounds the points of an answer.
	MaxPoints = 100_000
	// MaxSeries and MaxRows bound what a read touches.
	MaxSeries = 100_000
	MaxRows   = 50_000_000
	// MaxGroups bounds the aligned values before they are reduced.
	MaxGroups = 2_000_000
	// MaxBy bounds the labels that series are grouped by.
	MaxBy = 16
	// Late is after how long a window is final: points that come later than that change it
	// still, and a read that asks for final windows does not wait for them.
	Late = 5 * time.Minute
	// Lookback is how far before the range delta and rate look for the point before.
	Lookback = time.Hour
)

// Request asks for aligned points of one metric.
type Request struct {
	Topic string
	// Metric is the name. Required.
	Metric string
	// Where selects series: a filter over type, service, user_id, unit and labels
	// (attributes). Empty selects all.
	Where string
	// From (inclusive) and To (exclusive) bound the time. With a period both are moved outward to
	// its multiples: a value stands for (T - period, T]. A zero To is now. One instant in both is
	// the window that it lies in, or the points of that instant.
	From, To time.Time
	// Align is None by default, and needs a Period otherwise.
	Align  Aligner
	Period time.Duration
	// Reduce is None by default, which gives each series alone.
	Reduce Aligner
	// By are labels, or service, user_id or unit, by which the reducer groups.
	By []string
	// Final leaves out windows that end less than Late before now.
	Final bool
	// Now is the clock; zero: time.Now.
	Now time.Time
}

// check refuses what cannot be answered, and fills in defaults.
func (r *Request) check() error {
	if err := schemas.ValidateTopicName(r.Topic); err != nil {
		return bad("%v", err)
	}
	if r.Align == "" {
		r.Align = None
	}
	if r.Reduce == "" {
		r.Reduce = None
	}
	switch {
	case r.Metric == "":
		return bad("align is for one metric: name it")
	case !slices.Contains(Aligners, r.Align):
		return bad("align %q: it is one of %s", r.Align, words(Aligners))
	case !slices.Contains(Reducers, r.Reduce):
		return bad("reduce %q: it is one of %s", r.Reduce, words(Reducers))
	case r.Reduce != None && r.Align == None:
		return bad("reduce %s needs an aligner and a period, since points of different series rarely have the same time", r.Reduce)
	case r.Align == None && r.Period != 0:
		return bad("the period %s needs an aligner: one of %s", r.Period, words(Aligners[1:]))
	case r.Align != None && r.Period == 0:
		return bad("align %s needs a period, such as 1m", r.Align)
	case r.Align != None && (r.Period < MinPeriod || r.Period%MinPeriod != 0 || r.Period > MaxPeriod):
		return bad("period %s: it must be a multiple of %s, at most %s", r.Period, MinPeriod, MaxPeriod)
	case r.Reduce == None && len(r.By) > 0:
		return bad("series are grouped by a label only with a reducer: one of %s", words(Reducers[1:]))
	case len(r.By) > MaxBy:
		return bad("%d labels to group by, the limit is %d", len(r.By), MaxBy)
	case r.From.IsZero():
		return bad("align is for a range of time: give from")
	}
	for i, label := range r.By {
		if label == "" || len(label) > schemas.MaxAttrKeyBytes || slices.Contains(r.By[:i], label) {
			return bad("group by %q: a label has 1 to %d bytes and is named once", label, schemas.MaxAttrKeyBytes)
		}
	}
	return r.checkRange()
}

// checkRange fills in the end and moves both ends to windows.
func (r *Request) checkRange() error {
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	if r.To.IsZero() {
		r.To = schemas.Until(r.Now)
	}
	for _, t := range []time.Time{r.From, r.To} {
		if ns, err := schemas.UnixNs(t); err != nil {
			return bad("%v", err)
		} else if ns < 0 {
			return bad("%s lies before 1970", t.UTC().Format(time.RFC3339))
		}
	}
	if r.From.After(r.To) {
		return bad("from (%s) must not lie after to (%s)", r.From.UTC().Format(time.RFC3339Nano), r.To.UTC().Format(time.RFC3339Nano))
	}
	r.From, r.To = r.From.UTC(), r.To.UTC()
	instant := r.From.Equal(r.To)
	if r.Final && r.To.After(r.Now.Add(-Late)) {
		instant = false
		r.To = r.Now.Add(-Late).UTC()
		if r.Align != None { // inward: a window that is not over is not final
			r.To = windowEnd(r.To, r.Period, false)
		}
	}
	switch {
	case r.Align != None:
		r.From, r.To = windowEnd(r.From, r.Period, false), windowEnd(r.To, r.Period, true)
		if instant && r.From.Equal(r.To) { // the end of a window
			r.From = r.From.Add(-r.Period)
		}
	case instant:
		r.To = r.To.Add(1)
	}
	return nil
}

// windowEnd is the end of a window next to an instant: the one it lies in (up), or the one
// before unless it is an end itself.
func windowEnd(t time.Time, period time.Duration, up bool) time.Time {
	ns, p := t.UnixNano(), int64(period)
	at := ns - ns%p
	if up && at != ns {
		at += p
	}
	return time.Unix(0, at).UTC()
}

// windows is how many windows a range has, whose ends are windows' ends.
func windows(from, to time.Time, period time.Duration) int64 {
	return max(0, to.UnixNano()-from.UnixNano()) / int64(period)
}

// periods are the periods that are offered in place of one that gives too many points.
var periods = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour,
	6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour}

// fittingPeriod is the shortest of periods that gives so many values of each group at most
// limit in all; 0 when none does.
func fittingPeriod(from, to time.Time, groups, limit int64) time.Duration {
	for _, p := range periods {
		if n := windows(windowEnd(from, p, false), windowEnd(to, p, true), p); groups > 0 && n <= limit/groups {
			return p
		}
	}
	return 0
}

func words[T ~string](all []T) string {
	text := make([]string, len(all))
	for i, w := range all {
		text[i] = string(w)
	}
	return strings.Join(text, ", ")
}
