package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Rows 1, 2, 4 and 5 of the matrix: kill -9 of each of the five parts, all within a second and a half of each other and
// in any order, again and again, while a million events come in and damaged ones between them. TestRecovery kills them one
// at a time.
func TestKillCycles(t *testing.T) {
	cycles, events := 25, uint64(1_000_000)
	if testing.Short() {
		cycles, events = 2, 30_000
	}
	_, rnd := Seed(t)
	const rate = 1500
	h := Build(t, Plan{Routers: 2, Sinks: 2, Writers: []Writer{{Rate: rate}, {Rate: rate}, {Rate: rate}, {Rate: rate}}})
	h.StartWriters()
	if _, err := h.Flows(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var times Times
	vandal, calm := context.WithCancel(t.Context())
	done := make(chan struct{})
	vandalSeed := rand.New(rand.NewPCG(rnd.Uint64(), 0))
	go func() {
		defer close(done)
		h.rampage(vandal, vandalSeed, time.Second)
	}()
	seeds := map[Role]*rand.Rand{}
	for _, role := range Roles {
		seeds[role] = rand.New(rand.NewPCG(rnd.Uint64(), 0))
	}
	for range cycles {
		round, ctx := errgroup.WithContext(t.Context())
		for _, role := range Roles {
			round.Go(func() error {
				if err := pause(ctx, Between(seeds[role], 0, 1500*time.Millisecond)); err != nil {
					return err
				}
				return h.KillOne(ctx, role, seeds[role], &times)
			})
		}
		if err := round.Wait(); err != nil {
			t.Fatal(err)
		}
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
