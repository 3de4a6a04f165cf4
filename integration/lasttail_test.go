package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/schemas"
)

// SHARDS loses the last frame of an active shard, but not the checkpoint after it. Its
// position is not given again; verify names it, also while nothing new comes; and
// repair brings it back, or settles it where ClickHouse has it.
func TestLastFrameLost(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{true, false} {
		for _, more := range []bool{true, false} {
			t.Run(fmt.Sprintf("stored %v, more since %v", stored, more), func(t *testing.T) {
				t.Parallel()
				e := start(t, oneLaneTopic())
				quiet := func(c *sinkConfig) { c.Housekeeping = time.Hour }
				stopRouter, stopSink := e.router(), func() {}
				if stored {
					stopSink = e.sink(quiet)
				}
				p := e.producer("app")
				e.say(p, 10)
				e.routed("app", 10)
				if stored {
					e.stored("app", 10, 30*time.Second)
				}
				stopRouter()
				stopSink()
				frames := e.messages(schemas.StreamShards, schemas.ShardsFilter("app"))
				if err := e.shardsStream().DeleteMsg(t.Context(), frames[len(frames)-1].Sequence); err != nil {
					t.Fatal(err)
				}
				e.named("10")
				n := uint64(10)
				if more {
					e.router()
					e.say(p, 5)
					n += 5
					e.routed("app", n)
					last := e.messages(schemas.StreamShards, schemas.ShardsFilter("app"))
					for _, m := range last {
						if got, err := schemas.ParsePlaced(m.Header); err != nil || got.Pos == 10 {
							t.Errorf("position 10 was given again: %+v, %v", got, err)
						}
					}
					e.named("positions 10 to 10 are missing")
				}
				if plan := e.plan(); does(plan, repair.Lost) || plan.Todo() == 0 {
					t.Errorf("planned: %+v", plan.Actions)
				}
				e.killed()
				if !more {
					e.router()
					e.say(p, 3)
					n += 3
				}
				e.sink() // which settles the shard where repair had its lane leave it
				e.stored("app", n, 30*time.Second)
				eventually(t, 30*time.Second, func() error {
					rep, err := e.proof("")
					if err == nil && !rep.OK() {
						err = fmt.Errorf("%+v %q", rep.Totals, rep.Problems)
					}
					return err
				})
				e.repaired(n)
				if got := e.count("SELECT uniqExact(id) FROM %s", e.table("app")); got != n {
					t.Errorf("%d events, want %d", got, n)
				}
			})
		}
	}
}
