package fronts

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// BenchmarkPut measures creates of a server that syncs before it acknowledges: by one
// caller, and by 64 callers one by one and in groups.
func BenchmarkPut(b *testing.B) {
	for _, c := range []struct {
		name            string
		callers, single int
	}{{"alone", 1, 0}, {"64 one by one", 64, -1}, {"64 in groups", 64, 0}} {
		b.Run(c.name, func(b *testing.B) {
			w, _ := open(b, Config{Single: c.single}, embeddedtest.WithSync())
			ctx := timeout(b)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range c.callers {
				wg.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						if _, err := w.Put(ctx, record(fmt.Sprint(n), 0)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// BenchmarkLast reads the last record of a key.
func BenchmarkLast(b *testing.B) {
	w, _ := open(b, Config{})
	ctx := timeout(b)
	if _, err := w.Put(ctx, record("a", 0)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := w.Last(ctx, record("a", 0).Subject); err != nil {
			b.Fatal(err)
		}
	}
}
