package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// SHARDS loses its end between two batches, and the topic's shards become smaller before
// the lost frames are routed again. They go to the positions that they had, where
// ClickHouse has them: to leave the shard earlier would store them a second time.
func TestShardsCutBeforeAnotherRotation(t *testing.T) {
	t.Parallel()
	topic := oneLaneTopic()
	d := startOnDisk(t, topic)
	stop, stopSink := d.router(), d.sink()
	month := schemas.MonthOf(time.Now().UnixNano())
	say := func(from, to int) {
		for i := from; i < to; i++ {
			d.publish(schemas.EventsSubject("app", month, 0), fmt.Sprintf(`{"message":"%d"}`, i))
		}
	}
	for i := range 24 { // a batch each
		say(i, i+1)
		d.routed("app", uint64(i+1))
	}
	d.stored("app", 24, 30*time.Second)
	stop() // which keeps a copy of the checkpoint
	stopSink()
	d.cut(schemas.StreamShards)
	topic.Rotate.Rows = 3
	if _, _, err := d.reg.Apply(t.Context(), topic, false); err != nil {
		t.Fatal(err)
	}
	d.router()
	d.sink()
	say(24, 30)
	d.stored("app", 30, 30*time.Second)
	d.verify(30)
	if n := d.count("SELECT uniqExact(message) FROM %s", d.table("app")); n != 30 {
		t.Errorf("%d events, want 30", n)
	}
	if n := len(d.shards("app")); n < 2 {
		t.Errorf("%d shards: the other rotation did not begin", n)
	}
}
