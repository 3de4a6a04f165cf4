package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/bench"
)

// A steady load is offered to a whole Almanac, and each part's cost, what was written,
// what the disk holds and both ways to see an event come out as numbers that can be. It lasts longer than an insert of
// so little may wait (DefaultSQLFresh).
func TestBenchLoad(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.needEngine()
	out := b.ok("", "bench", "--load", "--only", "400x2", "--load-for", "30s", "--load-warm", "1s", "--load-marks", "2", "-o", "json")
	var report bench.LoadReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Loads) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	l := report.Loads[0]
	for what, v := range map[string]float64{
		"CPU of up": l.UpCPU, "of ClickHouse": l.EngineCPU, "of producers": l.ProducerCPU, "bytes of up": l.UpWritten, "bytes of ClickHouse": l.EngineWritten,
		"syncs": l.EngineSyncs, "inserts": float64(l.Inserts), "live bytes": float64(l.LiveBytes), "resident": float64(l.UpResident), "merged": l.MergedBytes,
		"query": l.QueryP99Millis, "SQL": l.SQLP99Millis, "open files": float64(l.EngineOpen), "EVENTS": l.EventsMessages, "SHARDS": l.ShardsMessages, "verify": l.VerifySeconds, "looks": float64(len(l.Looks)),
	} {
		if v <= 0 {
			t.Errorf("%s is %v", what, v)
		}
	}
	if l.Events < 600 || l.Dropped != 0 || l.Topics != 2 || l.HeldShare < 1 {
		t.Errorf("%+v", l)
	}
}

func TestBenchLoadUsage(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--load", "--only", "many"}, "RATExTOPICS"},
		{[]string{"--only", "1000"}, "belongs to --load"},
		{[]string{"--size", "short"}, "unknown flag"},
		{[]string{"--load", "--events", "5"}, "--events does not belong to --load"},
		{[]string{"--load-for", "1m"}, "belongs to --load"},
		{[]string{"--load", "--load-warm", "-1s"}, "must not be negative"},
	} {
		r := b.run("", append([]string{"bench"}, c.args...)...)
		if r.code != 2 || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: code %d: %s", c.args, r.code, r.err)
		}
	}
}
