package integration

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// TestRemovedTopicIsBackByAnOlderCopy restores NATS from a copy from before a removal: the topic is named. Declared, it stays; removed, it goes again.
func TestRemovedTopicIsBackByAnOlderCopy(t *testing.T) {
	t.Parallel()
	d := startOnDisk(t, newTopic("app"), newTopic("other"))
	if _, err := fmt.Sscanf(d.srv.NATSURL, "nats://127.0.0.1:%d", &d.port); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(t.TempDir(), "older")
	run := func() (stop func()) {
		stops := []func(){d.router(), d.sink(), d.background(d.keeper().Run)}
		return func() {
			for _, stop := range stops {
				stop()
			}
		}
	}
	stop := run()
	for _, topic := range []string{"app", "other"} {
		d.say(d.producer(topic), 30)
		d.stored(topic, 30, time.Minute)
	}
	d.verify(60)
	stop()
	d.copyTo(older)
	for _, kept := range []bool{true, false} {
		stop = run()
		d.remove("app")
		d.verify(30)
		stop()
		d.takeOlder(older, schemas.StreamEvents, schemas.StreamShards, schemas.KVStream, schemas.CopiesStream)
		d.named("topic app: it was removed at")
		stop = run()
		eventually(t, time.Minute, func() error { // the entry comes from ClickHouse
			_, err := d.reg.Removal(t.Context(), "app")
			return err
		})
		d.named("run `almanac topics rm app`, which takes it out again, or declare it with `almanac topics apply app`")
		if kept {
			if _, _, err := d.reg.Apply(t.Context(), newTopic("app"), false); err != nil {
				t.Fatal(err)
			}
			d.stored("app", 30, time.Minute)
			d.whole("app", 30)
			d.verify(60)
		} else {
			d.remove("app")
			d.verify(30)
		}
		stop()
	}
}
