package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

// EVENTS loses its end below an erasure's fence and gives the sequences again: what
// the user does afterwards is not what was erased, though its sequences are. Every
// reader shows it, a sink stores it, and neither the erasure taken up again nor its
// purge takes it; what was accepted before is gone.
func TestEraseAndACut(t *testing.T) {
	t.Parallel()
	const user = "user_id = 'u-7'"
	for _, c := range []struct {
		name   string
		before bool // the erasure ends before the cut; else it settles meanwhile
	}{{"erased before", true}, {"settling meanwhile", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := startOnDisk(t, oneLaneTopic())
			stopRouter, stopSink := d.router(), d.sink()
			d.publishOf("u-1", 40)
			d.publishOf("u-7", 20)
			d.stored("app", 60, 30*time.Second)
			x := d.eraser()
			job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"u-7"}})
			if err == nil && c.before {
				job, err = x.Run(t.Context(), "app", job.ID)
			}
			if err != nil || c.before && job.Rows != 20 {
				t.Fatalf("%+v, %v", job, err)
			}
			stopRouter()
			stopSink()
			d.cut(schemas.StreamEvents)
			seen := func(where string) {
				t.Helper()
				if got := d.found("app", user); got != 5 {
					t.Errorf("%s: a query finds %d events of the user, want the 5 since the cut", where, got)
				}
				counted, err := d.reader().Histogram(t.Context(), query.HistogramRequest{Topic: "app", Where: user})
				if err != nil || counted.Count != 5 {
					t.Errorf("%s: a count finds %+v (%v), want the 5 events since the cut", where, counted, err)
				}
			}
			d.publishOf("u-7", 5)
			if last := d.stream(schemas.StreamEvents).LastSeq; last >= job.Fence {
				t.Fatalf("EVENTS ends at %d, the fence is %d: nothing is told", last, job.Fence)
			}
			if !c.before { // it does not wait for what was accepted since, which nothing routes
				job, err = d.eraser(func(c *erasure.Config) { c.Within = maxWait * 20 * time.Second }).Run(t.Context(), "app", job.ID)
				if err != nil || job.State != ledger.Erased || job.Rows != 20 {
					t.Fatalf("%+v, %v; want 20 rows", job, err)
				}
			}
			d.router()
			d.routed("app", 65)
			seen("in SHARDS")
			if got := d.tailed("app", user); got != 5 {
				t.Errorf("a tail has %d events of the user, want the 5 since the cut", got)
			}
			if got := strings.Count(strings.Join(d.replayed(replay.Request{Topic: "app"}), ""), "u-7"); got != 5 {
				t.Errorf("a replay has %d events of the user, want the 5 since the cut", got)
			}
			d.sink()
			x = d.eraser()
			for range 2 { // the second is taken up after its end
				if job, err = x.Run(t.Context(), "app", job.ID); err != nil || job.State != ledger.Erased || job.Rows != 20 {
					t.Fatalf("%+v, %v; want 20 rows", job, err)
				}
			}
			// With the mark of the tail.
			d.stored("app", 46, 30*time.Second)
			if got := d.count("SELECT countIf(%s) FROM %s", user, d.table("app")); got != 5 {
				t.Errorf("SQL has %d events of the user, want the 5 since the cut", got)
			}
			seen("stored")
			if _, err = x.Purge(t.Context(), "app", job.ID); err != nil {
				t.Fatal(err)
			}
			if got := d.tailed("app", user); got != 5 {
				t.Errorf("after the purge a tail has %d events of the user, want the 5 since the cut", got)
			}
			d.verify(67)
			proof, err := x.Show(t.Context(), "app", job.ID)
			if err != nil || !proof.Certified {
				t.Errorf("%+v, %v", proof, err)
			}
		})
	}
}
