package series

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// A read that is too large is refused with what would do.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var points []point
	for i := range 300 {
		points = append(points, point{metric: "m", labels: map[string]string{"env": string(rune('a' + i%3)), "host": fmt.Sprint(i % 30), "n": fmt.Sprint(i)}, at: month.Add(time.Duration(i+1) * time.Second), value: 1})
	}
	r.insert(points...)
	r.Round()
	req := Request{Topic: "cpu", Metric: "m", From: month, To: month.Add(24 * time.Hour), Period: time.Minute, Align: Mean}
	for name, c := range map[string]struct {
		limits limits
		change func(*Request)
		want   string
	}{
		"series":         {limits{150, 1000, 1e6, 1e6}, nil, "it touches 300 series of metric \"m\", the limit is 150. Narrow it with --where to one value of env (3 values, at most 100 series each), or of host (30 values, at most 10 series each), or of n"},
		"pairs":          {limits{1, 1000, 1e6, 1e6}, nil, "Narrow it with --where to one value of n (300 values, at most 1 series each)"},
		"rows":           {limits{1000, 200, 1e6, 1e6}, nil, "it reads about 300 rows, the limit is 200. Take a shorter range. Narrow it with --where to one value of env"},
		"aligned values": {limits{1000, 1000, 1e6, 100_000}, nil, "300 series and 1440 windows of 1m0s are 432000 aligned values, the limit is 100000. A period of 5m0s fits"},
		"points":         {limits{1000, 1000, 100_000, 1e6}, nil, "300 groups and 1440 windows of 1m0s may give 432000 points, the limit is 100000. A period of 5m0s fits"},
		"groups":         {limits{1000, 1000, 10_000, 1e6}, func(r *Request) { r.Reduce, r.By = Sum, []string{"host"} }, "30 groups and 1440 windows of 1m0s may give 43200 points, the limit is 10000. A period of 5m0s fits"},
		"raw points":     {limits{1000, 1000, 100, 1e6}, func(r *Request) { r.Align, r.Period = None, 0 }, "it gives more than 100 points"},
	} {
		t.Run(name, func(t *testing.T) {
			req := req
			if c.change != nil {
				c.change(&req)
			}
			read := *r.read
			read.limits = c.limits
			_, err := read.Align(t.Context(), req)
			if !errors.Is(err, ErrTooMuch) || !errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	// A filter that narrows the read is enough.
	read := *r.read
	read.limits = limits{150, 1000, 1e6, 1e6}
	req.Where = "attributes.env = 'a'"
	if a, err := read.Align(t.Context(), req); err != nil || a.Series != 100 {
		t.Errorf("%v: not the hundred series of a", err)
	}
}

// Of a shard that retention dropped neither points nor series are told, and its list goes.
func TestDroppedShard(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old, new := point{metric: "m", labels: map[string]string{"host": "old"}, at: month, value: 1}, point{metric: "m", labels: map[string]string{"host": "new"}, at: month.Add(2 * time.Hour), value: 2}
	r.insert(old, old)
	r.insert(new)
	r.Round()
	ref := old.ref()
	err := r.Reg.RestoreShard(t.Context(), nil, registry.Shard{Topic: "cpu", Month: ref.Month, ID: ref.ID, Status: registry.Dropped, SealedAt: r.Pos[ref], Floor: r.Pos[ref],
		MinTs: old.at.UnixNano(), MaxTs: old.at.UnixNano(), DroppedRows: 2, DroppedAt: time.Now().UTC(), CreatedAt: time.Now().UTC()})
	if err == nil {
		err = r.DB.DropShard(t.Context(), ref)
	}
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		list, _, err := r.read.List(t.Context(), ListRequest{Topic: "cpu"})
		if err != nil || len(list) != 1 || list[0].Labels["host"] != "new" {
			t.Errorf("%s: %+v, %v", when, list, err)
		}
		if got := r.align(Request{Metric: "m", From: month.Add(-time.Hour), To: month.Add(3 * time.Hour)}).text(); got != "{host=new} 01:00 2" {
			t.Errorf("%s: %s", when, got)
		}
	}
	check("dropped")
	r.Round()
	check("after a round")
	var n uint64
	if err := r.DB.Conn().QueryRow(t.Context(), fmt.Sprintf("SELECT count() FROM %s WHERE shard = %d", sql.QuotedTable(r.DB.Database, "cpu.series"), uint64(ref.ID))).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows of its list are left, %v", n, err)
	}
}

// Percentiles of ten thousand uniform points are within one per cent of rank.
func TestPercentiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Exec(fmt.Sprintf("INSERT INTO %s (ts, id, type, value, month, shard, pos) SELECT fromUnixTimestamp64Milli(%d + number, 'UTC'), generateUUIDv7(number), 'u', 1000 + (number * 7919 %% 10000) / 10000, 202602, 1, 1 FROM numbers(10000)",
		sql.QuotedTable(r.DB.Database, "cpu"), at(t, "12:00:00.001").UnixMilli()))
	for how, want := range map[Aligner]float64{P05: 0.05, P50: 0.5, P95: 0.95, P99: 0.99} {
		a := r.align(Request{Metric: "u", From: at(t, "12:00:00"), To: at(t, "12:01:00"), Period: time.Minute, Align: how})
		if len(a.Groups) != 1 || len(a.Groups[0].Points) != 1 {
			t.Fatalf("%+v", a)
		}
		if rank := float64(*a.Groups[0].Points[0].Value) - 1000; rank < want-0.01 || rank > want+0.01 {
			t.Errorf("%s has the rank %g", how, rank)
		}
	}
}

// pointsEnv is how many points each of a thousand series has in TestLarge.
const pointsEnv = "ALMANAC_SERIES_POINTS"

// A thousand series, a point every ten seconds. Rows are made by ClickHouse itself: the reads are
// measured here, not the way in.
func TestLarge(t *testing.T) {
	t.Parallel()
	each, err := strconv.Atoi(os.Getenv(pointsEnv))
	if err != nil {
		each = 20
	}
	r := newRig(t)
	const series = 1000
	begin := at(t, "00:00:01")
	for from := 0; from < each; from += 500 {
		n := min(500, each-from)
		r.Exec(fmt.Sprintf(`INSERT INTO %s (ts, id, type, attributes, value, points, month, shard, pos)
SELECT fromUnixTimestamp64Milli(toInt64(%d + intDiv(number, %d) * 10000), 'UTC'), generateUUIDv7(number), 'cpu', map('host', toString(number %% %d), 'region', toString(number %% %d %% 10)), (number * 7919 %% 1000003) / 1000, 'gauge', 202602, number %% 4 + 1, %d
FROM numbers(%d) SETTINGS max_partitions_per_insert_block = 0, max_insert_block_size = 1000000`,
			sql.QuotedTable(r.DB.Database, "cpu"), begin.UnixMilli()+int64(from)*10_000, series, series, series, from/500+1, n*series))
	}
	took := func(what string, f func()) {
		t.Helper()
		began := time.Now()
		f()
		t.Logf("%-45s %s", what, time.Since(began).Round(time.Millisecond))
	}
	took(fmt.Sprintf("%d points examined and listed", each*series), r.Round)
	end := begin.Add(time.Duration(each) * 10 * time.Second)
	ask := func(what string, from, to time.Time, where string, how, reduce Aligner, by ...string) {
		t.Helper()
		took(what, func() {
			a := r.align(Request{Metric: "cpu", Where: where, From: from, To: to, Period: time.Minute, Align: how, Reduce: reduce, By: by})
			if a.Series == 0 || len(a.Groups) == 0 {
				t.Errorf("%s: %d series, %d groups", what, a.Series, len(a.Groups))
			}
		})
	}
	ask("all to 60 s, mean, by region", begin, end, "", Mean, Mean, "region")
	ask("all to 60 s, summary, by region", begin, end, "", Summary, Summary, "region")
	ask("all to 60 s, p95, by region", begin, end, "", P95, Max, "region")
	ask("all to 60 s, mean, every series reduced", begin, end, "", Mean, Sum)
	ask("an hour of all series, mean", begin, begin.Add(time.Hour), "", Mean, None)
	ask("one series by label", begin, end, "attributes.host = '7'", Mean, None)
	took("series listed", func() {
		if list, more, err := r.read.List(t.Context(), ListRequest{Topic: "cpu", Limit: 1000}); err != nil || more || len(list) != series {
			t.Errorf("%d series, %v", len(list), err)
		}
	})
}
