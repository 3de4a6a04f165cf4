package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/schemas"
)

// Rows 4 and 5: a router and a sink that kill themselves at each named point, at a hit the seed chooses. Shards are small,
// so that rotations and seals are always under way.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	rounds := Rounds(t)
	h := Build(t, Plan{Rotate: schemas.Rotation{Rows: 3000}, Writers: []Writer{{Rate: 1500}, {Rate: 1500}}})
	h.StartWriters()
	flows(t, h)
	both, ctx := errgroup.WithContext(t.Context())
	for _, p := range []*Part{h.Routers[0], h.Sinks[0]} {
		r := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		both.Go(func() error { return h.CrashOn(ctx, p, rounds, r) })
	}
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	flows(t, h)
	if got, want := h.Said(RoleRouter, "crashed")+h.Said(RoleSink, "crashed"), uint64(rounds*len(points)); got != want {
		t.Errorf("%d parts killed themselves, want %d", got, want)
	}
	h.Prove(time.Minute)
}

// Rows 3 and 9, and "mid-batch": bytes of a batch, or of an insert, stop at one the seed chooses, and in that instant
// the part that sends them, or the one that receives them, is killed.
func TestCrashMidMessage(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	rounds := Rounds(t)
	h := Build(t, Plan{Proxied: true, Writers: []Writer{{Rate: 3000}, {Rate: 3000}}})
	h.StartWriters()
	flows(t, h)
	for range rounds {
		for _, c := range []struct {
			name string
			link *Proxy
			part *Part
		}{
			{"the router in the middle of a batch", h.RouterLink, h.Routers[0]},
			{"NATS in the middle of a batch", h.RouterLink, h.NATS},
			{"NATS in the middle of a frame", h.WriterLink, h.NATS},
			{"the sink in the middle of an insert", h.InsertLink, h.Sinks[0]},
			{"the engine in the middle of an insert", h.InsertLink, h.Engine},
		} {
			done := make(chan struct{})
			c.link.CutAfter(1+rnd.IntN(120_000), func() { c.part.Kill(); close(done) })
			await(t, startWait, func(context.Context) error {
				if !isDone(done) {
					return fmt.Errorf("not so many bytes passed to kill %s", c.name)
				}
				return nil
			})
			h.start(c.part)
			flows(t, h)
		}
	}
	h.Prove(time.Minute)
}
