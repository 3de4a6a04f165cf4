package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// A router, a sink and a tail are at work while NATS is started again on a stream that
// lost its end: none of them waits for sequences that are given to other messages.
func TestRunningThroughACut(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{schemas.StreamEvents, schemas.StreamShards} {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			d := startOnDisk(t, oneLaneTopic())
			if _, err := fmt.Sscanf(d.srv.NATSURL, "nats://127.0.0.1:%d", &d.port); err != nil {
				t.Fatal(err)
			}
			d.router()
			d.sink()
			var mu sync.Mutex
			heard, notes := map[string]bool{}, []string{}
			d.background(func(ctx context.Context) error {
				err := d.reader().Tail(ctx, query.TailRequest{Topic: "app", Note: func(s string) {
					mu.Lock()
					defer mu.Unlock()
					notes = append(notes, s)
				}}, func(_ string, event json.RawMessage) error {
					var ev struct{ Message string }
					err := json.Unmarshal(event, &ev)
					mu.Lock()
					defer mu.Unlock()
					heard[ev.Message] = true
					return err
				})
				if errors.Is(err, context.Canceled) {
					err = nil
				}
				return err
			})
			month := schemas.MonthOf(time.Now().UnixNano())
			say := func(n int, mark string) {
				for i := range n {
					d.publish(schemas.EventsSubject("app", month, 0), fmt.Sprintf(`{"message":"%s %d"}`, mark, i))
				}
			}
			hears := func(n int, mark string) {
				t.Helper()
				eventually(t, 20*time.Second, func() error {
					mu.Lock()
					defer mu.Unlock()
					for i := range n {
						if m := fmt.Sprintf("%s %d", mark, i); !heard[m] {
							return fmt.Errorf("the tail did not give %q; notes: %q", m, notes)
						}
					}
					return nil
				})
			}
			say(1, "first")
			d.stored("app", 1, 30*time.Second)
			say(40, "before")
			d.stored("app", 41, 30*time.Second)
			hears(40, "before")
			d.cut(stream)
			say(12, "since") // fewer than were lost
			eventually(t, 30*time.Second, func() error {
				if err := d.repairer().Apply(t.Context(), d.plan(), func(*repair.Action, error) {}); err != nil {
					return err // the router that runs moved a checkpoint meanwhile
				}
				if d.count("SELECT count() FROM %s", d.table("app")) != 53 { // the cut went through a batch
					return errors.New("not stored yet")
				}
				return nil
			})
			hears(12, "since")
			d.repaired(53)
			if n := d.count("SELECT uniqExact(message) FROM %s", d.table("app")); n != 53 {
				t.Errorf("%d events, want 53", n)
			}
		})
	}
}
