package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// GroupBy is what a bill is made for.
type GroupBy string

// What there may be a bill for. Total is one bill for all that was selected.
const (
	Total      GroupBy = ""
	BySpace    GroupBy = "space"
	ByProvider GroupBy = "provider"
	ByCustomer GroupBy = "customer"
	ByMeter    GroupBy = "meter"
	ByDay      GroupBy = "day"   // in UTC; the first and the last may be cut
	ByMonth    GroupBy = "month" // likewise
	// One for each customer of a space, or of a provider: what its own diffs add up to.
	BySpaceAndCustomer    GroupBy = "space,customer"
	ByProviderAndCustomer GroupBy = "provider,customer"
)

// Groupings lists the groups of one key, and Pairs those of two, for messages and help.
var (
	Groupings = []GroupBy{BySpace, ByProvider, ByCustomer, ByMeter, ByDay, ByMonth}
	Pairs     = []GroupBy{BySpaceAndCustomer, ByProviderAndCustomer}
)

// InOrder returns the group with its keys in the order of Groupings.
func (g GroupBy) InOrder() GroupBy {
	keys := strings.Split(string(g), ",")
	slices.SortStableFunc(keys, func(a, b string) int {
		return cmp.Compare(slices.Index(Groupings, GroupBy(a)), slices.Index(Groupings, GroupBy(b)))
	})
	return GroupBy(strings.Join(keys, ","))
}

// OfCustomer says whether each bill is of one customer.
func (g GroupBy) OfCustomer() bool {
	return g == ByCustomer || g == BySpaceAndCustomer || g == ByProviderAndCustomer
}

// Measure is what is measured.
type Measure string

// The measures. Integral is the size over time; Sum adds the deltas between from and to, and
// Count counts them, for meters without a size, such as bytes sent.
const (
	Integral Measure = "integral"
	Sum      Measure = "sum"
	Count    Measure = "count"
)

// Measures lists the measures, for messages and help.
var Measures = []Measure{Integral, Sum, Count}

// Request asks for the usage of a topic of kind meter.
type Request struct {
	Topic string
	// Meter, Provider, Space and Customer select; empty selects all. A report of more than
	// one meter must be grouped by one of the first four groups.
	Meter, Provider, Space, Customer string
	// From (inclusive) and To (exclusive) bound the time, in whole milliseconds: To is rounded up.
	From, To time.Time
	GroupBy  GroupBy
	// Measure is Integral by default.
	Measure Measure
	// ByCause groups the rows by cause, which needs neither marks nor sums, whatever is
	// selected.
	ByCause bool

	// instant: the size at the last millisecond before To is asked for.
	instant bool
	// at: nothing that was stored after the positions were read.
	at bool
	// above: only diffs above these positions.
	above Positions
	// after: only bills behind that one. limit is how many at most, 0 for all.
	after *billPlace
	limit int
}

// maxBuckets bounds the days or months of a report.
const maxBuckets = 10_000

// check refuses what cannot be answered, and fills in defaults.
func (r *Request) check() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", schemas.ErrRequest, fmt.Sprintf(format, a...))
	}
	if err := schemas.ValidateTopicName(r.Topic); err != nil {
		return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	if r.Measure == "" {
		r.Measure = Integral
	}
	if !slices.Contains(Measures, r.Measure) {
		return bad("measure %q: it is one of %s", r.Measure, words(Measures, ", "))
	}
	r.GroupBy = r.GroupBy.InOrder()
	if r.GroupBy != Total && !slices.Contains(Groupings, r.GroupBy) && !slices.Contains(Pairs, r.GroupBy) {
		return bad("group-by %q: it is one of %s, or %s", r.GroupBy, words(Groupings, ", "), words(Pairs, " or "))
	}
	if r.From.IsZero() || r.To.IsZero() {
		return bad("usage is for a range of time: give from and to")
	}
	for _, t := range []time.Time{r.From, r.To} {
		if _, err := schemas.UnixNs(t); err != nil {
			return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
		}
		if t.UnixMilli() < 0 {
			return bad("%s lies before 1970", t.UTC().Format(time.RFC3339))
		}
	}
	// The end is moved up: a diff of the millisecond that a range to now ends in was accepted before.
	r.From, r.To = r.From.UTC().Truncate(time.Millisecond), r.To.UTC().Add(time.Millisecond-1).Truncate(time.Millisecond)
	if !r.From.Before(r.To) {
		return bad("from (%s) must lie before to (%s)", r.From.Format(time.RFC3339Nano), r.To.Format(time.RFC3339Nano))
	}
	if n := len(r.edges()); n > maxBuckets {
		return bad("the range has %d of group-by %s, the limit is %d; take months, or a shorter range", n, r.GroupBy, maxBuckets)
	}
	return nil
}

// edges are where the range's buckets begin, in Unix milliseconds, none unless it is grouped
// by time.
func (r *Request) edges() (out []int64) {
	next := func(t time.Time) time.Time {
		if r.GroupBy == ByMonth {
			return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		}
		return time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
	}
	if r.GroupBy != ByDay && r.GroupBy != ByMonth {
		return nil
	}
	for t := r.From.UTC(); t.Before(r.To) && len(out) <= maxBuckets; t = next(t) {
		out = append(out, t.UnixMilli())
	}
	return out
}

// byTime reports whether there is a bill for each span of time.
func (r *Request) byTime() bool { return r.GroupBy == ByDay || r.GroupBy == ByMonth }

func words[T ~string](all []T, between string) string {
	text := make([]string, len(all))
	for i, w := range all {
		text[i] = string(w)
	}
	return strings.Join(text, between)
}
