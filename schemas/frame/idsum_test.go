package frame

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

func TestIDSum(t *testing.T) {
	topic := schemas.NewTopic("app")
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano()
	sumOf := func(ts []int64, ids []schemas.ID) uint64 {
		b := NewBuilder(&topic)
		for i := range ts {
			b.Append(&schemas.Event{Message: "m"}, ts[i], ids[i])
		}
		built := b.IDSum()
		f, payload := b.Encode()
		var r Reader
		if err := r.Open(payload, &topic, f.Schema); err != nil {
			t.Fatal(err)
		}
		if read := r.IDSum(); read != built {
			t.Fatalf("the builder has %x, the reader %x", built, read)
		}
		return built
	}
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(r, "events")
		ts, ids := make([]int64, n), make([]schemas.ID, n)
		for i := range n {
			ts[i] = noon + rapid.Int64Range(0, 1e9).Draw(r, "time")
			ids[i] = schemas.NewID(ts[i])
		}
		whole := sumOf(ts, ids)
		backTs, backIDs := make([]int64, n), make([]schemas.ID, n)
		for i := range n {
			backTs[i], backIDs[i] = ts[n-1-i], ids[n-1-i]
		}
		if got := sumOf(backTs, backIDs); got != whole {
			r.Fatalf("in another order the sum is %x, not %x", got, whole)
		}
		if n > 1 {
			cut := rapid.IntRange(1, n-1).Draw(r, "cut")
			if two := sumOf(ts[:cut], ids[:cut]) + sumOf(ts[cut:], ids[cut:]); two != whole {
				r.Fatalf("in two frames the sum is %x, not %x", two, whole)
			}
		}
		at := rapid.IntRange(0, n-1).Draw(r, "changed")
		was := ids[at]
		ids[at][15] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
		if sumOf(ts, ids) == whole {
			r.Fatal("an id that changed did not change the sum")
		}
		ids[at] = was
		ts[at]++
		if sumOf(ts, ids) == whole {
			r.Fatal("a time that changed did not change the sum")
		}
	})
}

func BenchmarkIDSum(b *testing.B) {
	topic := schemas.NewTopic("app")
	fb := NewBuilder(&topic)
	for range schemas.FrameRows {
		fb.Append(&schemas.Event{Message: "m"}, 1e18, schemas.NewID(1e18))
	}
	f, payload := fb.Encode()
	var r Reader
	if err := r.Open(payload, &topic, f.Schema); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		r.IDSum()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/schemas.FrameRows, "ns/event")
}
