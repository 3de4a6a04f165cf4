package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// SHARDS was restored from an older copy and gave its positions again, to as many events as ClickHouse
// has there, and no sink runs that would notice. A janitor keeps such frames: nothing else has them.
func TestJanitorKeepsFramesOfAnUnnoticedFork(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	stopSink := e.sink()
	e.router()
	p := e.producer("app", func(c *producer.Config) { c.Linger = -1 })
	e.say(p, 5)
	e.stored("app", 5, 30*time.Second)
	stopSink()
	e.replaceRow("app", "message = '4'", "toUUID('00000000-0000-7000-8000-000000000001') AS id")
	nc := e.connect()
	j, err := retention.New(t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.sinkDB, ReplayWindow: time.Second, KeepTime: retention.MinKeepTime})
	if err != nil {
		t.Fatal(err)
	}
	shard := e.shards("app")[0]
	frames := len(e.messages(schemas.StreamShards, shard.Ref().Subject()))
	eventually(t, 10*time.Second, func() error {
		if err := j.Round(t.Context()); !errors.Is(err, retention.ErrUnverified) {
			return errors.Join(errors.New("the janitor found nothing that differs"), err)
		}
		return nil
	})
	if left := len(e.messages(schemas.StreamShards, shard.Ref().Subject())); left != frames || frames < 2 {
		t.Errorf("%d of %d frames are left", left, frames)
	}
}
