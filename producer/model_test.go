package producer

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/integration/model"
	"github.com/almanac-events/almanac/schemas"
)

// The model holds a lane exactly when a producer does.
func TestModelHoldsLanesAsProducersDo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		real, modelled := newWindow(schemas.MaxInFlight), model.NewWindow()
		for range rapid.IntRange(1, 300).Draw(rt, "steps") {
			if got, want := modelled.Space(), real.space(math.MaxUint64); got != want {
				rt.Fatalf("the model says room %t, the window %t", got, want)
			}
			if real.space(math.MaxUint64) && rapid.IntRange(0, 2).Draw(rt, "add") > 0 {
				f := &laneFrame{}
				real.add(f)
				if got := modelled.Add(); got != f.seq {
					rt.Fatalf("the model gives seq %d, the window %d", got, f.seq)
				}
				continue
			}
			lo := real.next - min(real.next, schemas.MaxInFlight+2)
			seq := rapid.Uint64Range(lo, real.next).Draw(rt, "answered")
			if got, want := modelled.Take(seq), real.take(seq) != nil; got != want {
				rt.Fatalf("seq %d: the model says it waited %t, the window %t", seq, got, want)
			}
		}
	})
}
