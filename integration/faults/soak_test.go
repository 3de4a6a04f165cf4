package faults

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/schemas"
)

// SoakEnv is how many minutes the soak lasts; without it there is none. SoakReportEnv is the file its report goes to,
// SoakOnlyEnv a regular expression for the names of the faults, to try some of them.
const (
	SoakEnv       = "ALMANAC_SOAK_MINUTES"
	SoakReportEnv = "ALMANAC_SOAK_REPORT"
	SoakOnlyEnv   = "ALMANAC_SOAK_ONLY"
)

// All faults mixed, for as long as one likes: `make soak MINUTES=30`.
func TestSoak(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv(SoakEnv), 64)
	if err != nil {
		t.Skipf("it runs by `make soak MINUTES=n`, which sets %s", SoakEnv)
	}
	path, err := filepath.Abs(cmp.Or(os.Getenv(SoakReportEnv), "soak.md"))
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := Seed(t)
	const rate = 2000
	h := Build(t, Plan{
		Proxied: true, Routers: 2, Sinks: 2, InsertTimeout: 15 * time.Second, Rotate: schemas.Rotation{Rows: 20_000},
		Writers: []Writer{{Rate: rate}, {Rate: rate}, {Rate: rate, Step: time.Hour},
			{Rate: rate / 4, From: time.Date(2026, 10, 31, 23, 59, 30, 0, time.UTC).UnixNano()}},
	})
	h.StartWriters()
	flows(t, h)
	ctx, calm := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.rampage(ctx, rand.New(rand.NewPCG(seed, 2)), time.Second) }()
	intruded := make(chan struct{})
	go func() { defer close(intruded); h.intrusion(ctx, rand.New(rand.NewPCG(seed, 3)), 2*time.Second) }()
	go h.weighAll(ctx)
	var outage Outage
	go outage.watch(ctx, h)

	var times, calmly Times
	mix := Mix()
	if only := os.Getenv(SoakOnlyEnv); only != "" {
		names, err := regexp.Compile(only)
		if err != nil {
			t.Fatal(err)
		}
		if mix = slices.DeleteFunc(mix, func(f Fault) bool { return !names.MatchString(f.Name) }); len(mix) == 0 {
			t.Fatalf("%s: %q fits no fault", SoakOnlyEnv, only)
		}
	}
	schedule := NewSchedule(seed, mix)
	began := time.Now()
	for n := 1; time.Since(began).Minutes() < minutes; n++ {
		step := schedule.Next()
		start := time.Now()
		if err := step.Fault.Make(t.Context(), h, step.Rand); err != nil {
			t.Fatalf("fault %d, %s: %v", n, step.Fault.Name, err)
		}
		since := time.Now()
		if step.Fault.FromStart {
			since = start
		}
		took, err := h.Flows(t.Context(), since)
		if err != nil {
			t.Errorf("after fault %d, %s (%s): %v\n%s", n, step.Fault.Name, since.Sub(start), err, h.WordsSince(start))
			break // what became of the events until now is told all the same
		}
		times.Add(step.Fault.Name, took)
		load := loadAverage()
		if load <= quietLoad {
			calmly.Add(step.Fault.Name, took)
		}
		t.Logf("%s fault %d: %s, lasted %s, events flow after %s; load %.1f", time.Since(began).Round(time.Second), n, step.Fault.Name, seconds(since.Sub(start)), seconds(took), load)
		if h.isSlowest(took) {
			t.Logf("what the parts said:\n%s", h.WordsSince(start))
		}
		if err := backoff.Sleep(t.Context(), step.Pause); err != nil {
			t.Fatal(err)
		}
	}
	lasted := time.Since(began)
	calm()
	<-done
	<-intruded
	r := Report{
		Seed: seed, Lasted: lasted, Finding: h.Prove(10 * time.Minute), Times: &times, Calmly: &calmly, Peaks: h.Peaks(), Outage: outage.Longest(),
		Burnt: h.Said(RoleSink, "burnt"), Resent: h.Said(RoleProducer, "resent"),
	}
	var text bytes.Buffer
	if _, err := r.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("the report is in %s", path)
}
