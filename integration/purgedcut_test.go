package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// EVENTS loses its end, and of the messages that it lost an erasure's purge took every
// trace from SHARDS: before the loss, or after it and before the janitor looks. They were
// routed, so they are not named as lost.
func TestPurgedIsNotLost(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(map[bool]string{false: "purged before", true: "purged before the janitor looks"}[late], func(t *testing.T) {
			t.Parallel()
			d := startOnDisk(t, oneLaneTopic())
			purge := func(job ledger.Erasure) {
				t.Helper()
				if job, err := d.eraser().Purge(t.Context(), "app", job.ID); err != nil || job.Purged == nil || job.Purged.Frames == 0 {
					t.Fatalf("%+v, %v; want frames purged", job, err)
				}
			}
			stopRouter, stopSink := d.router(), d.sink()
			d.publishOf("u-1", 30)
			d.publishOf("u-7", 20)
			d.publishOf("u-1", 10)
			d.stored("app", 60, 30*time.Second)
			d.noted(60)
			job, err := d.eraser().Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"u-7"}})
			if err == nil {
				job, err = d.eraser().Run(t.Context(), "app", job.ID)
			}
			if err != nil || job.Rows != 20 {
				t.Fatalf("%+v, %v; want 20 rows", job, err)
			}
			if !late {
				purge(job)
			}
			stopRouter()
			stopSink()
			d.cut(schemas.StreamEvents)
			if late {
				purge(job)
			}
			d.publishOf("u-1", 5)
			d.router()
			d.sink()
			d.stored("app", 45, 30*time.Second)
			d.noted(d.stream(schemas.StreamEvents).LastSeq)
			d.verify(65)
		})
	}
}

// noted waits until the janitor noted where EVENTS ends.
func (d *onDisk) noted(seq uint64) {
	d.t.Helper()
	eventually(d.t, 30*time.Second, func() error {
		end, _, err := d.reg.End(d.t.Context(), schemas.StreamEvents)
		if err == nil && end.Seq < seq {
			err = fmt.Errorf("noted end of EVENTS is %d, want %d", end.Seq, seq)
		}
		return err
	})
}
