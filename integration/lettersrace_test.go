package integration

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/schemas"
)

// Processes that send the same dead letters again at once all end well. Each letter arrives
// once and is counted by one of them; the others say that it was taken.
func TestDeadLettersRetriedAtOnce(t *testing.T) {
	t.Parallel()
	const letters, processes = 300, 3 // more than one process settles in one go
	e := running(t, newTopic("app"))
	for i := range letters {
		e.publish("events.app.2026-02.0", fmt.Sprintf(`{"ts":"2026-03-01T00:00:00Z","message":"m%d"}`, i))
	}
	eventually(t, 30*time.Second, func() error {
		if n := len(e.messages(schemas.StreamShards, schemas.DeadSubject("app"))); n != letters {
			return fmt.Errorf("%d dead letters, want %d", n, letters)
		}
		return nil
	})
	var mu sync.Mutex
	did, retried := map[string]int{}, map[string]int{}
	var wg sync.WaitGroup
	for range processes {
		nc := e.connect()
		d, err := deadletters.New(t.Context(), nc, e.registry(nc), nil, e.db)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := d.Resolve(t.Context(), deadletters.Request{Topic: "app"}, func(o deadletters.Outcome) error {
				mu.Lock()
				defer mu.Unlock()
				if did[o.Did]++; o.Did == deadletters.Retried {
					retried[o.ID]++
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if did[deadletters.Kept] > 0 || did[deadletters.Retried] != len(retried) {
		t.Errorf("%v, of %d letters that were sent again", did, len(retried))
	}
	e.stored("app", letters, 30*time.Second)
	eventually(t, 30*time.Second, func() error {
		rep, err := e.proof("app")
		if err == nil && (!rep.OK() || rep.Accepted != letters || rep.Stored != letters || rep.Dead != 0) {
			err = fmt.Errorf("%+v %s", rep.Totals, rep.Problems)
		}
		return err
	})
	if got := e.count("SELECT uniqExact(message) FROM %s", e.table("app")); got != letters {
		t.Errorf("%d messages, want %d", got, letters)
	}
}
