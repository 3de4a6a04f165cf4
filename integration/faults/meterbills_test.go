package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// meterTimes is how often each diff is sent.
const meterTimes = 3

// diffs are those of the scenarios of a metered space. The first is the later copy of one that comes after it.
func diffs(t *testing.T) (out []meter.Diff) {
	add := func(space, cause string, delta int64, when string) {
		at, err := time.Parse(time.RFC3339Nano, when)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, meter.Diff{Meter: "bytes", Provider: "p", Space: space, Cause: cause, Delta: delta, Customer: "cust-" + space, Time: at})
	}
	add("s3", "c-1", 100, "2026-02-01T00:00:00.100Z")
	add("s3", "c-1", 100, "2026-01-31T23:59:59.900Z")
	add("s1", "c-1", 100, "2026-02-01T00:00:00Z")
	add("s1", "c-2", 50, "2026-02-10T12:00:00Z")
	add("s1", "c-3", -30, "2026-02-20T00:00:00Z")
	add("s2", "c-1", 1<<40, "2026-01-15T00:00:00Z")
	add("s2", "c-2", 1<<30, "2026-02-28T23:00:00Z")
	add("s5", "c-1", 100, "2026-02-01T00:00:00Z")
	add("s6", "c-1", 5, "2026-02-01T00:00:00Z")
	add("s6", "c-2", -10, "2026-02-02T00:00:00Z")
	add("s7", "c-1", 1<<53, "2026-02-01T00:00:00Z")
	return out
}

// writerDiffs are those of twenty writers on one space: +1 each.
func writerDiffs(n int) []meter.Diff {
	out := make([]meter.Diff, n)
	for i := range out {
		out[i] = meter.Diff{Meter: "bytes", Provider: "p", Space: "s4", Cause: fmt.Sprint("w-", i), Delta: 1, Customer: "cust-s4", Time: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}
	}
	return out
}

// focusEvent is a line of a real bill as an event.
func focusEvent(i int, l *inputtest.FocusLine) schemas.Event {
	units, err := strconv.ParseInt(l.BilledUnits(), 10, 64)
	if err != nil {
		panic(err) // the file is one we know
	}
	d := meter.Diff{Meter: "cost", Provider: l.Provider, Space: "sku-" + l.SKU, Cause: fmt.Sprint("line-", i), Delta: units, Customer: l.Account, Time: l.End}
	e := made(d.Event())
	e.Attrs = append(e.Attrs, schemas.String("amount", cmp.Or(l.Consumed, "0")))
	return e
}

// badDiffs are refused, each for a reason of its own. AHEAD is a time that is too far ahead.
var badDiffs = []badLine{
	{`"cause":"b-1","delta":1.5`, "bad-value", `delta is "1.5", it must be a whole number`},
	{`"cause":"b-2","delta":9007199254740993`, "bad-value", "delta is 9007199254740993, it must be -9007199254740992 to 9007199254740992"},
	{`"cause":"b-3"`, "bad-value", "delta is missing"},
	{`"delta":100`, "bad-value", "cause is missing"},
	{`"cause":"","delta":100`, "bad-value", "cause is empty"},
	{`"cause":"b-6","delta":1,"ts":"AHEAD"`, "time-too-far-ahead", "the limit is 5m0s"},
}

// scenario is a request and its answer, by the number that kinds and their acceptance give it.
type scenario struct {
	name, space, from, to string
	numbers               string // size at the start and at the end, usage, average and causes
	repeats               int    // below zero: not told
	whole                 bool   // the range cuts no day, so that sums can answer it
}

func (m *metered) scenarios() []scenario {
	const jan, feb, mar = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"
	return []scenario{
		{"1 shuffled, three times", "s1", feb, mar, "0 120 298512000000 123.392857142857 3", 6, true},
		{"1 big numbers", "s2", feb, mar, "1099511627776 1100585369600 2659942395386265600000 1099513225606.095238095238 2", 4, true},
		{"2 January", "s3", jan, feb, "0 100 10000 0.000003733572 1", -1, true},
		{"2 February", "s3", feb, mar, "100 100 241920000000 100 1", 5, true},
		{"3 twenty writers", "s4", feb, mar, fmt.Sprintf("0 %d %d %d %d", m.writers, m.writers*2419200000, m.writers, m.writers), m.writers, true},
		{"1 a failed day", "s5", feb, "2026-02-26T00:00:00Z", "0 100 216000000000 100 1", 2, true},
		{"1 a range of days", "s1", "2026-02-10T00:00:00Z", "2026-02-20T00:00:00Z", "100 150 127440000000 147.5 2", -1, true},
		{"1, 6 a range that cuts days", "s1", "2026-02-10T18:00:00Z", "2026-02-20T10:00:00Z", "150 120 124200000000 148.706896551724 3", 6, false},
		{"1, 6 another", "s1", "2026-02-10T06:00:00Z", "2026-02-20T10:00:00Z", "100 120 129600000000 147.540983606557 3", 6, false},
		{"7 below zero", "s6", feb, "2026-02-03T00:00:00Z", "0 -5 0 0 2", 4, true},
		{"7 2^53", "s7", feb, mar, "0 9007199254740992 21790216437069407846400000 9007199254740992 1", 2, true},
		{"7 no such space", "none", feb, mar, "0 0 0 0 0", 0, true},
	}
}

// bills asks for every bill, by space, which reads its rows, by customer, which takes what is derived, and by cause.
func (m *metered) bills(ctx context.Context, topic string) error {
	u := usage.New(m.read)
	for _, w := range m.scenarios() {
		from, err1 := time.Parse(time.RFC3339, w.from)
		to, err2 := time.Parse(time.RFC3339, w.to)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		want, repeats := w.numbers, w.repeats
		if m.gone[w.space] {
			want, repeats = "0 0 0 0 0", 0
		}
		for _, req := range []usage.Request{{Space: w.space, Provider: "p", Meter: "bytes"}, {Customer: "cust-" + w.space}, {Customer: "cust-" + w.space, ByCause: true}} {
			req.Topic, req.From, req.To = topic, from, to
			rep, err := u.Report(ctx, req)
			if m.dropped && !w.whole {
				if !errors.Is(err, usage.ErrCut) {
					return wrongly("%s: %+v: a range that cuts a dropped day: %v", w.name, req, err)
				}
				continue
			}
			if err != nil {
				return fmt.Errorf("%+v: %w", req, err)
			}
			b := rep.Bills[0]
			got := fmt.Sprintf("%s %s %s %s %d", b.SizeStart, b.SizeEnd, b.Usage, b.Average, b.Causes)
			if got != want || repeats >= 0 && b.Repeats != uint64(repeats) || b.Anomaly != (w.space == "s6") {
				return wrongly("%s: %+v: %s, %d repeats, anomaly %t, want %s and %d", w.name, req, got, b.Repeats, b.Anomaly, want, repeats)
			}
		}
	}
	return m.focusBills(ctx, topic)
}

// focusBills are acceptance 8: a bill of 1,000 lines over 73 accounts, sent twice.
func (m *metered) focusBills(ctx context.Context, topic string) error {
	if m.focus == nil {
		return nil
	}
	req := usage.Request{Topic: topic, Meter: "cost", From: time.Date(2024, 9, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2024, 11, 1, 0, 0, 0, 0, time.UTC)}
	var got []string
	for _, ask := range []struct {
		by      usage.GroupBy
		measure usage.Measure
	}{{usage.Total, usage.Sum}, {usage.ByCustomer, usage.Sum}, {usage.ByMonth, usage.Count}} {
		req.GroupBy, req.Measure = ask.by, ask.measure
		rep, err := usage.New(m.read).Report(ctx, req)
		if err != nil {
			return fmt.Errorf("%+v: %w", req, err)
		}
		switch ask.by {
		case usage.ByCustomer:
			got = append(got, fmt.Sprint(len(rep.Bills), " accounts"))
			for _, b := range rep.Bills {
				if b.Customer == "11353890204" {
					got = append(got, b.Usage)
				}
			}
		default:
			for _, b := range rep.Bills {
				got = append(got, fmt.Sprint(b.Usage, " ", b.Causes, "+", b.Repeats))
			}
		}
	}
	if text, want := fmt.Sprint(got), "[2052022672899 1000+1000 73 accounts 1361648254970 999 999+999 1 1+1]"; text != want {
		return wrongly("8 the bill of FOCUS: %s, want %s", text, want)
	}
	return nil
}

// allCounted checks what SQL says once all of a topic is derived: the quantities of FOCUS, and how many repeats there are.
func (m *metered) allCounted(when, topic string) {
	m.t.Helper()
	if m.dropped {
		return
	}
	if m.focus != nil {
		var consumed string
		q := "SELECT toString(sum(amount)) FROM " + sql.QuotedTable(m.db.Database, topic+schemas.ViewOnce) + " WHERE type = 'cost'"
		if err := m.db.Conn().QueryRow(m.ctx, q).Scan(&consumed); err != nil || consumed != "13438.712904456820057" {
			m.t.Errorf("%s, topic %s: consumed %s, %v", when, topic, consumed, err)
		}
	}
	sent := len(diffs(m.t.(*testing.T)))
	want := uint64(m.writers + len(m.focus) + meterTimes*sent - sent + 1)
	if m.gone["s5"] {
		want -= meterTimes - 1
	}
	m.verified(when, topic, want)
	if _, err := usage.New(m.read).Report(m.ctx, usage.Request{Topic: "usage", From: time.Unix(2, 0), To: time.Unix(1, 0)}); !errors.Is(err, schemas.ErrRequest) {
		m.t.Errorf("%s: from after to: %v", when, err)
	}
}
