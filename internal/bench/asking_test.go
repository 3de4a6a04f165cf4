package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked [][]string
		there, broken := map[string]uint64{}, error(nil)
		locked := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
		a := newAsking(func(_ context.Context, waiting map[string]time.Time) (map[string]uint64, error) {
			mu.Lock()
			defer mu.Unlock()
			var names []string
			for trace := range waiting {
				names = append(names, trace)
			}
			asked = append(asked, names)
			return maps.Clone(there), broken
		}, sqlPause)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.run(ctx)
		saw := func(trace string) <-chan error {
			c := make(chan error, 1)
			go func() {
				within, cancel := context.WithTimeout(ctx, 10*sqlPause)
				defer cancel()
				c <- a.seen(within, time.Now(), trace)
			}()
			return c
		}
		<-time.After(5*sqlPause + sqlPause/2) // between two ticks
		locked(func() {
			if len(asked) > 0 {
				t.Fatalf("asked for %v", asked)
			}
		})
		one, two := saw("one"), saw("two")
		synctest.Wait()
		<-time.After(2 * sqlPause)
		synctest.Wait()
		locked(func() {
			if len(asked) != 2 || len(asked[0]) != 2 || len(one)+len(two) > 0 {
				t.Fatalf("asked for %v; %d and %d were seen", asked, len(one), len(two))
			}
			there["one"] = 1
		})
		if err := <-one; err != nil {
			t.Fatal(err)
		}
		locked(func() { there["two"] = 2 })
		if err := <-two; fmt.Sprint(err) != "it is there 2 times" {
			t.Fatal(err)
		}
		if err := <-saw("never"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		wrong := errors.New("it is broken")
		locked(func() { broken = wrong })
		if err := <-saw("broken"); !errors.Is(err, wrong) {
			t.Fatal(err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.waiting)+len(a.answers) > 0 {
			t.Fatalf("%v still waits", a.waiting)
		}
	})
}
