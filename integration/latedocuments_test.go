package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

// A writer whose clock stands still makes a shard of a month long past again and again. What ended before
// such a shard began is dropped all the same; what ended later waits for it.
func TestRetentionWithAStoppedClock(t *testing.T) {
	t.Parallel()
	topic := docsTopic()
	topic.Lanes, topic.KeepDays, topic.Rotate = 1, 30, schemas.Rotation{Rows: 20}
	e := start(t, topic)
	e.router()
	s, err := sinks.New(t.Context(), e.connect(), sinks.Config{Registry: e.reg, DB: e.sinkDB, Linger: 50 * time.Millisecond, Housekeeping: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	e.background(s.Run)
	of := func(days int) *documents.Collection {
		now := time.Now().AddDate(0, 0, -days)
		return e.documents("customers", func(c *documents.Config) { c.Now = func() time.Time { return now } })
	}
	old, stopped := of(40), of(80)
	made := 0
	put := func(c *documents.Collection) {
		t.Helper()
		if _, err := c.Create(t.Context(), documents.Draft{ID: fmt.Sprint("d-", made), Path: "p", Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		made++
		e.stored("customers", uint64(made), time.Minute)
	}
	// until writes until a lane has so many shards, and waits until those that it left are closed.
	until := func(n, closed int) {
		t.Helper()
		for len(e.shards("customers")) < n {
			put(old)
		}
		eventually(t, time.Minute, func() error {
			have := 0
			for _, s := range e.shards("customers") {
				if s.Status == registry.Closed {
					have++
				}
			}
			if have != closed {
				return fmt.Errorf("%d shards are closed, expected %d", have, closed)
			}
			return nil
		})
	}
	until(2, 1)
	put(stopped)
	until(4, 2)
	j, err := retention.New(t.Context(), e.connect(), retention.Config{Registry: e.reg, DB: e.sinkDB})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		eventually(t, time.Minute, func() error { return j.Round(t.Context()) })
	}
	var got []registry.Status
	for _, s := range e.shards("customers") { // by month, then age
		got = append(got, s.Status)
	}
	if want := fmt.Sprint([]registry.Status{registry.Active, registry.Dropped, registry.Closed, registry.Active}); fmt.Sprint(got) != want {
		t.Errorf("the shards are %v, expected %s", got, want)
	}
	e.verified("customers")
}
