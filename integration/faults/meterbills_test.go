package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/query/usage"
)

// diffs are those of the scenarios of a metered space.
func diffs(t *testing.T) (out []meter.Diff) {
	add := func(space, cause string, delta int64, when string) {
		at, err := time.Parse(time.RFC3339Nano, when)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, meter.Diff{Meter: "bytes", Provider: "p", Space: space, Cause: cause, Delta: delta, Customer: "cust-" + space, Time: at})
	}
	add("s1", "c-1", 100, "2026-02-01T00:00:00Z")
	add("s1", "c-2", 50, "2026-02-10T12:00:00Z")
	add("s1", "c-3", -30, "2026-02-20T00:00:00Z")
	add("s2", "c-1", 1<<40, "2026-01-15T00:00:00Z")
	add("s2", "c-2", 1<<30, "2026-02-28T23:00:00Z")
	add("s3", "c-1", 100, "2026-02-01T00:00:00.100Z") // its first is sent later
	add("s3", "c-1", 100, "2026-01-31T23:59:59.900Z")
	add("s5", "c-1", 100, "2026-02-01T00:00:00Z")
	add("s6", "c-1", 5, "2026-02-01T00:00:00Z")
	add("s6", "c-2", -10, "2026-02-02T00:00:00Z")
	return out
}

// wanted are the numbers of the scenarios: size at the start and at the end, usage, average and causes. Where repeats are
// told, each diff came three times. whole: the range cuts no day, so that sums can answer it.
var wanted = []struct {
	space, from, to, numbers string
	repeats                  int
	whole                    bool
}{
	{"s1", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "0 120 298512000000 123.392857142857 3", 6, true},
	{"s2", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "1099511627776 1100585369600 2659942395386265600000 1099513225606.095238095238 2", 4, true},
	{"s3", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "0 100 10000 0.000003733572 1", -1, true},
	{"s3", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "100 100 241920000000 100 1", 5, true},
	{"s5", "2026-02-01T00:00:00Z", "2026-02-26T00:00:00Z", "0 100 216000000000 100 1", 2, true},
	{"s1", "2026-02-10T00:00:00Z", "2026-02-20T00:00:00Z", "100 150 127440000000 147.5 2", -1, true},
	{"s1", "2026-02-10T18:00:00Z", "2026-02-20T10:00:00Z", "150 120 124200000000 148.706896551724 3", 6, false},
	{"s1", "2026-02-10T06:00:00Z", "2026-02-20T10:00:00Z", "100 120 129600000000 147.540983606557 3", 6, false},
	{"s6", "2026-02-01T00:00:00Z", "2026-02-03T00:00:00Z", "0 -5 0 0 2", 4, true},
	{"none", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "0 0 0 0 0", 0, true},
}

// exact holds the bills of a topic to what they must be.
func (m *metered) exact(when, topic string) {
	m.t.Helper()
	if err := m.bills(m.ctx, topic); err != nil {
		m.t.Errorf("%s: %v", when, err)
	}
}

// bills asks for every bill, by space, which reads its rows, and by customer, which takes what is derived.
func (m *metered) bills(ctx context.Context, topic string) error {
	u := usage.New(m.read)
	dropped := m.topic.KeepDays > 0
	for _, w := range wanted {
		from, err1 := time.Parse(time.RFC3339, w.from)
		to, err2 := time.Parse(time.RFC3339, w.to)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		want := w.numbers
		repeats := w.repeats
		if m.gone[w.space] {
			want, repeats = "0 0 0 0 0", 0
		}
		for _, req := range []usage.Request{{Space: w.space, Provider: "p", Meter: "bytes"}, {Customer: "cust-" + w.space}, {Customer: "cust-" + w.space, ByCause: true}} {
			req.Topic, req.From, req.To = topic, from, to
			rep, err := u.Report(ctx, req)
			if dropped && !w.whole {
				if !errors.Is(err, usage.ErrCut) {
					return fmt.Errorf("%w: %+v: a range that cuts a dropped day: %w", errWrong, req, err)
				}
				continue
			}
			if err != nil {
				return fmt.Errorf("%+v: %w", req, err)
			}
			b := rep.Bills[0]
			if got := fmt.Sprintf("%s %s %s %s %d", b.SizeStart, b.SizeEnd, b.Usage, b.Average, b.Causes); got != want || repeats >= 0 && b.Repeats != uint64(repeats) {
				return fmt.Errorf("%w: %+v: %s and %d repeats, want %s and %d", errWrong, req, got, b.Repeats, want, repeats)
			}
		}
	}
	return nil
}
