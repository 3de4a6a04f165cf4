package integration

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/removal"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// stopsOnce stands still at a point once it is armed, until wake is closed.
type stopsOnce struct {
	point        string
	once         sync.Once
	stands, wake chan struct{}
}

func newStop(point string) *stopsOnce {
	return &stopsOnce{point: point, stands: make(chan struct{}), wake: make(chan struct{})}
}

func (s *stopsOnce) at(point string) {
	if point == s.point {
		s.once.Do(func() { close(s.stands); <-s.wake })
	}
}

// TestRemovalBeforeARouterOrASinkGoesOn removes a topic while a router stands still with a batch, and while a sink does with an insert. A removal waits for the router and names
// it. What the sink has is of the topic that was removed: the name's next topic gets nothing of it.
func TestRemovalBeforeARouterOrASinkGoesOn(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	routing, storing := newStop("router.before-batch"), newStop("sink.before-insert")
	e.router(func(c *router.Config) { c.Crash = routing.at })
	e.sink(func(c *sinkConfig) { c.Crash = storing.at })
	e.say(e.producer("app"), 10)
	<-routing.stands
	cfg := e.removals(nil)
	cfg.Seen = time.Second
	if _, err := removal.Run(t.Context(), cfg, "app"); !errors.Is(err, removal.ErrSlow) {
		t.Errorf("while a router stands still: %v", err)
	}
	close(routing.wake)
	e.remove("app")
	again := newTopic("app", schemas.Field{Name: "more", Type: schemas.TypeString})
	e.apply(again)
	e.say(e.producer("app"), 20)
	<-storing.stands
	e.remove("app")
	again.Lanes = 2
	e.apply(again)
	e.say(e.producer("app"), 5)
	close(storing.wake)
	e.stored("app", 5, time.Minute)
	e.say(e.producer("app"), 6)
	e.stored("app", 11, time.Minute)
	e.whole("app", 11)
	e.verify(11)
}
