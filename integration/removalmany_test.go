package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/removal"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// removalMonthsEnv is of how many months TestRemovalOfManyShards removes five shards each; make faults takes 200.
const removalMonthsEnv = "ALMANAC_REMOVAL_MONTHS"

// TestRemovalOfManyShards removes a topic of many months and shards: it ends, nothing is left, and the name's next topic has its own
// events of the same months alone. It prints how long that took.
func TestRemovalOfManyShards(t *testing.T) {
	t.Parallel()
	months := sized(removalMonthsEnv, 4)
	const each = 60 // events of a month: five shards of twelve
	e := startDozens(t)
	e.router()
	e.sink()
	p, at := e.producer("app"), time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	log := func(p *producer.Producer, n int) {
		for m := range months {
			for i := range n {
				if err := p.Publish(t.Context(), producer.Event{Time: at.AddDate(0, -m, 0), Message: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	log(p, each)
	e.stored("app", uint64(months*each), 10*time.Minute)
	shards := 0
	for m := range months {
		in, err := e.reg.Shards(t.Context(), "app", schemas.MonthOf(at.AddDate(0, -m, 0).UnixNano()))
		if err != nil {
			t.Fatal(err)
		}
		shards += len(in)
	}
	if shards < 4*months {
		t.Fatalf("%d shards of %d months", shards, months)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	d, err := removal.Run(ctx, e.removals(nil), "app")
	if err != nil || d.Ended == nil {
		t.Fatalf("%+v, %v", d, err)
	}
	t.Logf("%d shards of %d months were removed in %v: %v", shards, months, time.Since(began).Round(time.Millisecond), d.Took)
	if left, err := removal.Look(t.Context(), e.removals(nil), "app"); err != nil || !left.Nothing() {
		t.Errorf("there is left: %v, %v", left, err)
	}
	e.apply(newTopic("app"))
	log(e.producer("app"), 1)
	e.stored("app", uint64(months), time.Minute)
	e.whole("app", uint64(months))
}
