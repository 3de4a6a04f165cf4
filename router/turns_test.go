package router

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// The lanes of 64 topics that begin together write to the registry a few at a time,
// and one that ends meanwhile waits no longer.
func TestLanesThatBeginTogetherQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entries := make(queue, maxEntries)
		ctx, cancel := context.WithCancel(t.Context())
		var under, most, ended atomic.Int64
		release := make(chan struct{})
		var wg sync.WaitGroup
		for range 256 {
			wg.Go(func() {
				if err := entries.take(ctx); err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					ended.Add(1)
					return
				}
				defer entries.done()
				most.Store(max(most.Load(), under.Add(1)))
				<-release
				under.Add(-1)
			})
		}
		synctest.Wait()
		if n := most.Load(); n != maxEntries {
			t.Errorf("%d write at once, want %d", n, maxEntries)
		}
		cancel()
		synctest.Wait()
		if n := ended.Load(); n != 256-maxEntries {
			t.Errorf("%d stopped waiting, want %d", n, 256-maxEntries)
		}
		close(release)
		wg.Wait()
		if len(entries) != 0 {
			t.Errorf("%d turns were not given back", len(entries))
		}
	})
}
