package integration

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// The janitor does not purge while the disk of NATS is full, and does
// so again afterwards.
func TestJanitorLeavesAFullDisk(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	errFull := errors.New("the disk is full")
	var room atomic.Bool
	var refused atomic.Int64
	e.sink(func(c *sinkConfig) {
		c.Retention.ReplayWindow, c.Retention.KeepTime = time.Second, retention.MinKeepTime
		c.Retention.MayPurge = func() error {
			if room.Load() {
				return nil
			}
			return errFull
		}
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) {
			if errors.Is(err, errFull) && strings.Contains(err.Error(), "nothing is purged") {
				refused.Add(1)
			}
		}
	})
	p := e.producer("app")
	const frames = 20
	for i := range frames {
		p.Log(producer.Event{UserID: "u", Message: fmt.Sprint(i)})
		e.flush(p)
	}
	e.stored("app", frames, 30*time.Second)
	// Rounds for twice as long as it takes for a message to be purged.
	eventually(t, time.Minute, func() error {
		if n, want := refused.Load(), int64(2*retention.MinKeepTime/(200*time.Millisecond)); n < want {
			return fmt.Errorf("%d rounds were refused, want %d", n, want)
		}
		return nil
	})
	if n := e.stream(schemas.StreamEvents).Msgs; n != frames {
		t.Errorf("%d messages of EVENTS are left, want all %d", n, frames)
	}
	room.Store(true)
	eventually(t, time.Minute, func() error {
		if n := e.stream(schemas.StreamEvents).Msgs; n > 1 {
			return fmt.Errorf("%d messages of EVENTS are left, want the last", n)
		}
		return nil
	})
	e.verify(frames)
}
