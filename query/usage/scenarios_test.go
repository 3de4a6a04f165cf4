package usage

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The scenarios of a metered space, from the rows alone, from marks, and from sums.
func TestScenarios(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ms := func(s string) int64 { return at(t, s).UnixMilli() }
	d := func(space, cause string, delta int64, when string) row {
		return row{meter: "bytes", provider: "p", space: space, cause: cause, delta: delta, ms: ms(when), customer: "cust-" + space}
	}
	var rows []row
	for range 3 { // each three times, over two shards
		rows = append(rows, d("s1", "c-1", 100, "2026-02-01T00:00:00Z"), d("s1", "c-2", 50, "2026-02-10T12:00:00Z"), d("s1", "c-3", -30, "2026-02-20T00:00:00Z"))
	}
	for i := range rows {
		rows[i].shard = uint64(i % 2)
	}
	rows = append(rows, d("s2", "c-1", 1<<40, "2026-01-15T00:00:00Z"), d("s2", "c-2", 1<<30, "2026-02-28T23:00:00Z"),
		d("s3", "c-1", 100, "2026-02-01T00:00:00.100Z"), d("s3", "c-1", 100, "2026-01-31T23:59:59.900Z"),
		d("s5", "c-1", 100, "2026-02-01T00:00:00Z"), d("s6", "c-1", 5, "2026-02-01T00:00:00Z"), d("s6", "c-2", -10, "2026-02-02T00:00:00Z"))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for _, w := range rows {
		r.insert(w)
	}
	type want struct {
		space, from, to        string
		start, end, usage, avg string
		causes, repeats        uint64
		anomaly                bool
	}
	wants := []want{
		{"s1", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "0", "120", "298512000000", "123.392857142857", 3, 6, false},
		{"s2", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "1099511627776", "1100585369600", "2659942395386265600000", "1099513225606.095238095238", 2, 0, false},
		{"s3", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "0", "100", "10000", "0.000003733572", 1, 0, false},
		{"s3", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "100", "100", "241920000000", "100", 1, 1, false},
		{"s5", "2026-02-01T00:00:00Z", "2026-02-26T00:00:00Z", "0", "100", "216000000000", "100", 1, 0, false},
		{"s1", "2026-02-10T00:00:00Z", "2026-02-20T00:00:00Z", "100", "150", "127440000000", "147.5", 2, 4, false},
		{"s1", "2026-02-10T18:00:00Z", "2026-02-20T10:00:00Z", "150", "120", "124200000000", "148.706896551724", 3, 6, false},
		{"s1", "2026-02-10T06:00:00Z", "2026-02-20T10:00:00Z", "100", "120", "129600000000", "147.540983606557", 3, 6, false},
		{"none", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "0", "0", "0", "0", 0, 0, false},
		{"s6", "2026-02-01T00:00:00Z", "2026-02-03T00:00:00Z", "0", "-5", "0", "0", 2, 0, true},
	}
	first := true
	check := func(t *testing.T) {
		for _, w := range wants {
			ways := []Request{{Customer: "cust-" + w.space}}
			if first { // a space is read from its rows, whatever is derived
				ways = append(ways, Request{Space: w.space, Provider: "p", Meter: "bytes"})
			}
			for _, req := range ways {
				req.From, req.To = at(t, w.from), at(t, w.to)
				b := r.one(req)
				got := want{w.space, w.from, w.to, b.SizeStart, b.SizeEnd, b.Usage, b.Average, b.Causes, b.Repeats, b.Anomaly}
				if got != w {
					t.Errorf("%+v:\n got %+v\nwant %+v", req, got, w)
				}
			}
		}
		for _, byCause := range []bool{false, true} {
			rep := r.report(Request{From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z"), GroupBy: BySpace, ByCause: byCause})
			got := ""
			for _, b := range rep.Bills {
				got += fmt.Sprintf("%s/%s/%s %s %s %d+%d; ", b.Meter, b.Provider, b.Space, b.SizeEnd, b.Usage, b.Causes, b.Repeats)
			}
			want := "bytes/p/s1 120 298512000000 3+6; bytes/p/s2 1100585369600 2659942395386265600000 2+0; bytes/p/s3 100 241920000000 1+1; bytes/p/s5 100 241920000000 1+0; bytes/p/s6 -5 -11232000000 2+0; "
			if got != want {
				t.Errorf("all spaces (by cause: %v):\n got %s\nwant %s", byCause, got, want)
			}
			days := r.report(Request{Customer: "cust-s1", From: at(t, "2026-02-09T12:00:00Z"), To: at(t, "2026-02-12T00:00:00Z"), GroupBy: ByDay, ByCause: byCause})
			got = ""
			for _, b := range days.Bills {
				got += fmt.Sprintf("%s %s-%s %s %d; ", b.From.Format("02T15"), b.SizeStart, b.SizeEnd, b.Usage, b.Causes)
			}
			if want := "09T12 100-100 4320000000 0; 10T00 100-150 10800000000 1; 11T00 150-150 12960000000 0; "; got != want {
				t.Errorf("by day (by cause: %v):\n got %s\nwant %s", byCause, got, want)
			}
		}
		for _, w := range []struct{ space, at, size string }{
			{"s1", "2026-01-31T23:59:59.999Z", "0 0 0"}, {"s1", "2026-02-01T00:00:00Z", "100 1 2"}, {"s1", "2026-02-10T11:59:59.999Z", "100 1 2"}, {"s1", "2026-02-10T12:00:00Z", "150 2 4"},
			{"s1", "2026-02-19T23:59:59.999999Z", "150 2 4"}, {"s1", "2026-02-20T00:00:00.0005Z", "120 3 6"}, {"s1", "2026-06-01T00:00:00Z", "120 3 6"}, {"s3", "2026-01-31T23:59:59.899Z", "0 0 0"},
			{"s3", "2026-01-31T23:59:59.9Z", "100 1 0"}, {"s6", "2026-02-02T00:00:00Z", "-5 2 0"}, {"none", "2026-02-02T00:00:00Z", "0 0 0"},
		} {
			if got := r.sizes(SizeRequest{Customer: "cust-" + w.space, At: at(t, w.at)}); got != w.size+"; " {
				t.Errorf("%s at %s: %s, want %s", w.space, w.at, got, w.size)
			}
			if got := r.sizes(SizeRequest{Space: w.space, At: at(t, w.at)}); first && got != w.size+"; " {
				t.Errorf("space %s at %s: %s, want %s", w.space, w.at, got, w.size)
			}
		}
		if got := r.sizes(SizeRequest{GroupBy: BySpace, At: at(t, "2026-02-01T00:00:00Z")}); got != "s1 100 1 2; s2 1099511627776 1 0; s3 100 1 0; s5 100 1 0; s6 5 1 0; " {
			t.Errorf("all spaces at the beginning of February: %s", got)
		}
		if b := r.one(Request{Customer: "cust-s1", From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z"), Measure: Sum}); b.Usage != "120" || b.Average != "" {
			t.Errorf("sum: %+v", b)
		}
		if b := r.one(Request{Customer: "cust-s1", From: at(t, "2026-02-10T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z"), Measure: Count}); b.Usage != "2" {
			t.Errorf("count: %+v", b)
		}
	}
	t.Run("nothing derived", check)
	first = false
	r.Examine(r.Shards()[0])
	r.sum(r.Shards()[0])
	t.Run("one shard derived", check)
	r.derive()
	t.Run("summed", check)
	r.Exec("TRUNCATE TABLE " + r.DB.Database + ".`usage.repeats`")
	t.Run("repeats lost", check)
}
