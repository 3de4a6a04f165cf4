package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// SoakEnv is how many minutes the soak lasts; without it there is none.
const SoakEnv = "ALMANAC_SOAK_MINUTES"

// All faults mixed, for as long as one likes: `make soak MINUTES=30`.
func TestSoak(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv(SoakEnv), 64)
	if err != nil {
		t.Skipf("it runs by `make soak MINUTES=n`, which sets %s", SoakEnv)
	}
	seed, rnd := Seed(t)
	const rate = 2000
	h := Build(t, Plan{
		Proxied: true, Routers: 2, Sinks: 2, InsertTimeout: 15 * time.Second, Rotate: schemas.Rotation{Rows: 200_000},
		Writers: []Writer{{Rate: rate}, {Rate: rate}, {Rate: rate, Step: time.Hour},
			{Rate: rate / 4, From: time.Date(2026, 10, 31, 23, 59, 30, 0, time.UTC).UnixNano()}},
	})
	h.StartWriters()
	flows(t, h)
	ctx, calm := context.WithCancel(t.Context())
	done := make(chan struct{})
	vandal := rand.New(rand.NewPCG(rnd.Uint64(), 0))
	go func() { defer close(done); h.rampage(ctx, vandal, time.Second) }()

	var times Times
	faults := Mix()
	end := time.Now().Add(time.Duration(minutes * float64(time.Minute)))
	for n := 0; time.Now().Before(end); n++ {
		if n%len(faults) == 0 {
			rnd.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		}
		f := faults[n%len(faults)]
		began := time.Now()
		if err := f.Make(t.Context(), h, rnd); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		lasted := time.Since(began)
		took, err := h.Flows(t.Context(), time.Now())
		if err != nil {
			t.Fatalf("after %s (%s): %v", f.Name, lasted, err)
		}
		times.Add(f.Name, took)
		for _, p := range h.Parts() {
			p.weigh()
		}
		if err := pause(t.Context(), Between(rnd, 0, time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	calm()
	<-done
	v := h.Prove(10 * time.Minute)
	t.Log("\n" + report(h, v, seed, minutes, &times))
}

// report is the table of a soak.
func report(h *House, v *Verdict, seed uint64, minutes float64, times *Times) string {
	var b strings.Builder
	all := times.All()
	fmt.Fprintf(&b, "soak of %g minutes, seed %d: %d faults\n\n%s\n\n", minutes, seed, len(all), times)
	fmt.Fprintf(&b, "events accepted     %d\nevents lost         %d\nevents twice        %d\n", v.Told, len(v.Lost), len(v.Twice))
	fmt.Fprintf(&b, "unknown outcome     %d, none of them twice\n", v.Unknown)
	fmt.Fprintf(&b, "dead letters        %d, for %d damaged messages and %d repeated too late\n", v.Dead, v.Damaged, v.Echoed)
	fmt.Fprintf(&b, "burnt tokens met    %d\n", h.Said(RoleSink, "burnt"))
	fmt.Fprintf(&b, "frames, shards      %d, %d\n", v.Frames, v.Shards)
	fmt.Fprintf(&b, "longest recovery    %s\n\npeak memory\n", quantile(all, 1).Round(10*time.Millisecond))
	for _, p := range append(h.Parts(), h.retired()...) {
		fmt.Fprintf(&b, "  %-12s %5d MiB\n", p.Spec.Name, p.Peak()>>20)
	}
	return b.String()
}
