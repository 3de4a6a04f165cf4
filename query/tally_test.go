package query

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Empty buckets show, within a given range from end to end, else between the
// first event and the last.
func TestBuckets(t *testing.T) {
	t.Parallel()
	const open = math.MaxInt64
	cells := map[cell]uint64{{3, "a"}: 2, {3, "b"}: 1, {6, "a"}: 4}
	for _, c := range []struct {
		from, to int64
		want     []uint64
	}{
		{1, open, []uint64{3, 0, 0, 4}},
		{10, open, []uint64{0, 0, 3, 0, 0, 4}},
		{10, 79, []uint64{0, 0, 3, 0, 0, 4, 0}},
	} {
		var got []uint64
		for i, b := range buckets(cells, Step{Length: 10}, c.from, c.to, true) {
			got = append(got, b.Count)
			if first := max(c.from/10, 0); c.from > 1 && b.At.UnixNano() != (first+int64(i))*10 {
				t.Errorf("bucket %d begins at %d", i, b.At.UnixNano())
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d to %d: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	if got := buckets(nil, Step{Length: 10}, 1, open, false); got != nil {
		t.Errorf("nothing at all has the buckets %v", got)
	}
	if got := buckets(nil, Step{Length: 10}, 10, 39, false); len(got) != 3 {
		t.Errorf("nothing in a range has the buckets %v", got)
	}
	many := map[cell]uint64{}
	for i := range 15 {
		many[cell{1, string(rune('a' + i))}] = uint64(100 - i)
	}
	b := buckets(many, Step{Length: 10}, 1, open, true)[0]
	if len(b.By) != MaxHistogramValues+1 || b.By["a"] != 100 || b.By[OtherValues] != 90+89+88+87+86 {
		t.Errorf("15 values became %v", b.By)
	}
}

func TestFittingStep(t *testing.T) {
	t.Parallel()
	for span, want := range map[time.Duration]string{
		time.Second: "10ms", 10 * time.Minute: "15s", time.Hour: "1m", 24 * time.Hour: "15m", 30 * 24 * time.Hour: "1d", 365 * 24 * time.Hour: "1w",
	} {
		if got := fitting(int64(span)); got != want {
			t.Errorf("%s fits in steps of %s, want %s", span, got, want)
		}
	}
	for d, want := range map[time.Duration]string{time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Second: "10s", 70 * time.Second: "1m10s", time.Hour + time.Second: "1h0m1s"} {
		if got := (Step{Length: d}).String(); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
	}
}

// A part of a shard's range is that share of its rows.
func TestShare(t *testing.T) {
	t.Parallel()
	s := shardOf(1000, 1999, 0)
	for _, c := range []struct {
		lo, hi int64
		want   float64
	}{{1, math.MaxInt64, 1}, {1000, 1999, 1}, {1500, 1999, 0.5}, {1, 1099, 0.1}} {
		if got := share(&s, c.lo, c.hi); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d to %d: %v, want %v", c.lo, c.hi, got, c.want)
		}
	}
}

// What the DDL indexes is what notices and filters go by.
func TestIndexesOfTheTable(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	want := []sql.Index{{Column: "ts", Ordered: true}, {Column: "user_id"}, {Column: "month", Ordered: true}, {Column: "shard", Ordered: true}, {Column: "pos", Ordered: true}}
	if got := sql.Indexes(&topic); !slices.Equal(got, want) {
		t.Errorf("the table is indexed by %v, want %v", got, want)
	}
}
