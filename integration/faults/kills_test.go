package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Rows 1, 2, 4 and 5 of the matrix: kill -9 of each of the five parts again and again, three at a time, while a million
// events come in and damaged ones between them.
func TestKillCycles(t *testing.T) {
	cycles, events := 25, uint64(1_000_000)
	if testing.Short() {
		cycles, events = 2, 30_000
	}
	_, rnd := Seed(t)
	const rate = 2000
	h := Build(t, Plan{Routers: 2, Sinks: 2, Writers: []Writer{{Rate: rate}, {Rate: rate}, {Rate: rate}, {Rate: rate}}})
	h.StartWriters()
	if _, err := h.Flows(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var times Times
	killers, ctx := errgroup.WithContext(t.Context())
	// The lease of a dead router or sink outlives it by seconds, in which the other parts are killed too.
	for _, roles := range [][]Role{{RoleRouter}, {RoleSink}, {RoleNATS, RoleEngine, RoleProducer}} {
		r := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		killers.Go(func() error {
			for range cycles {
				for _, role := range roles {
					if err := h.KillOne(ctx, role, r, &times); err != nil {
						return err
					}
					if err := pause(ctx, Between(r, 0, 500*time.Millisecond)); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	vandal, calm := context.WithCancel(ctx)
	done := make(chan struct{})
	vandalSeed := rand.New(rand.NewPCG(rnd.Uint64(), 0))
	go func() {
		defer close(done)
		h.rampage(vandal, vandalSeed, time.Second)
	}()
	if err := killers.Wait(); err != nil {
		t.Fatal(err)
	}
	calm()
	<-done
	underFaults, err := h.Stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows were stored while parts were killed, for %s", underFaults, time.Since(began).Round(time.Second))
	if err := until(t.Context(), 4*time.Minute, 200*time.Millisecond, func(ctx context.Context) error {
		n, err := h.Stored(ctx)
		if err == nil && n < events {
			err = fmt.Errorf("%d rows of %d", n, events)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	v := h.Prove(2 * time.Minute)
	t.Logf("recovery, from the kill until new events of every lane are in ClickHouse:\n%s", &times)
	t.Logf("burnt tokens met: %d; frames sent again: %d", h.Said(RoleSink, "burnt"), h.Said(RoleProducer, "resent"))
	if uint64(v.Told) < events {
		t.Errorf("%d events were told stored, want %d", v.Told, events)
	}
	for _, role := range Roles {
		if n := times.Count("kill " + string(role)); n != cycles {
			t.Errorf("%s was killed %d times, want %d", role, n, cycles)
		}
	}
	if p99 := quantile(times.All(), 0.99); p99 > 30*time.Second {
		t.Errorf("p99 of recovery is %s; the promise is 10 s", p99)
	}
}

// rampage damages and repeats messages until ctx ends.
func (h *House) rampage(ctx context.Context, rnd *rand.Rand, every time.Duration) {
	for pause(ctx, Between(rnd, every/2, every)) == nil {
		if rnd.IntN(2) == 0 {
			_, _ = h.Vandal.Damage(ctx, rnd) // what had no answer is not counted on
		} else {
			_ = h.Vandal.Echo(ctx)
		}
	}
}
