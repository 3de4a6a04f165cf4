package faults

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Rows 1, 2, 4 and 5 of the matrix: kill -9 of each of the five parts, all within a second and a half of each other and
// in any order, again and again, until each died 25 times and a million events came in meanwhile, with damaged ones
// between them; make test has 10 kills and 400,000 events. So a part's recovery is measured while the others die as well;
// TestRecovery kills them one at a time.
func TestKillCycles(t *testing.T) {
	cycles := number("ALMANAC_KILL_CYCLES", 25)
	events := uint64(cycles) * 40_000
	_, rnd := Seed(t)
	const rate = 3000 // four times that is 1.4 million in the two minutes that 25 rounds take
	h := Build(t, Plan{Routers: 2, Sinks: 2, Writers: []Writer{{Rate: rate}, {Rate: rate}, {Rate: rate}, {Rate: rate}}})
	h.StartWriters()
	flows(t, h)
	began := time.Now()
	var times Times
	vandal, calm := context.WithCancel(t.Context())
	done := make(chan struct{})
	vandalSeed := rand.New(rand.NewPCG(rnd.Uint64(), 0))
	go func() {
		defer close(done)
		h.rampage(vandal, vandalSeed, time.Second)
	}()
	go h.weighAll(vandal)
	seeds := map[Role]*rand.Rand{}
	for _, role := range Roles {
		seeds[role] = rand.New(rand.NewPCG(rnd.Uint64(), 0))
	}
	killed, stored := 0, uint64(0)
	for ; killed < cycles || stored < events; killed++ {
		round, ctx := errgroup.WithContext(t.Context())
		for _, role := range Roles {
			round.Go(func() error {
				if err := backoff.Sleep(ctx, Between(seeds[role], 0, 1500*time.Millisecond)); err != nil {
					return err
				}
				return h.KillOne(ctx, role, seeds[role], &times)
			})
		}
		if err := round.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := until(t.Context(), recoveryLimit, 200*time.Millisecond, func(ctx context.Context) (err error) {
			stored, err = h.Stored(ctx)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	calm()
	<-done
	t.Logf("each part was killed %d times in %s, and %d events stored meanwhile", killed, time.Since(began).Round(time.Second), stored)
	v := h.Prove(5 * time.Minute)
	t.Logf("recovery, from the kill until new events of every lane are in ClickHouse:\n%s", &times)
	t.Logf("peak memory:\n%s", h.memory())
	t.Logf("burnt tokens met: %d; frames sent again: %d", h.Said(RoleSink, "burnt"), h.Said(RoleProducer, "resent"))
	if uint64(v.Told) < events {
		t.Errorf("%d events were told stored, want %d", v.Told, events)
	}
	for _, role := range Roles {
		if n := times.Count("kill -9 " + string(role)); n != killed {
			t.Errorf("%s was killed %d times, want %d", role, n, killed)
		}
	}
}

// rampage damages and repeats messages until ctx ends.
func (h *Cluster) rampage(ctx context.Context, rnd *rand.Rand, every time.Duration) {
	for backoff.Sleep(ctx, Between(rnd, every/2, every)) == nil {
		h.corrupters.RLock()
		if rnd.IntN(2) == 0 {
			_, _ = h.Corrupter.Damage(ctx, rnd) // what had no answer is not counted on
		} else {
			_ = h.Corrupter.Echo(ctx)
		}
		h.corrupters.RUnlock()
	}
}
