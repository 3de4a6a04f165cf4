package integration

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// A lane starts again to seal a shard that retention retired. While it starts, however long
// NATS takes for that, the router's looks for retired shards leave it alone, and it routes.
func TestRetiredShardOfASlowLane(t *testing.T) {
	t.Parallel()
	topic := oneLaneTopic()
	topic.KeepDays = 30
	e := start(t, topic)
	var looks, starts, failures atomic.Int64
	through := embeddedtest.LinkProxy(t, e.srv.NATSURL, func(r embeddedtest.Request) embeddedtest.Fate {
		if bytes.Contains(r.Data, []byte(schemas.KVSubject(schemas.HeadKeys("app")))) {
			looks.Add(1)
		}
		return embeddedtest.Fate{}
	}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} })
	starting, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	e.routerOn(e.connectTo(through), func(c *router.Config) {
		c.Discover = 20 * time.Millisecond
		c.Hooks.Fault = func(topic, lane string, err error) {
			failures.Add(1)
			e.logf("router %s/%s: %v", topic, lane, err)
		}
		c.Crash = func(point string) {
			if point == "router.before-seal" && starts.Add(1) == 1 {
				close(starting)
				<-goOn
			}
		}
	})
	p := e.producer("app")
	e.say(p, 5)
	e.routed("app", 5)
	s := e.shards("app")[0]
	if err := e.reg.Retire(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	select {
	case <-starting:
	case <-time.After(maxWait * 20 * time.Second):
		t.Fatal("the lane did not start again to seal its shard")
	}
	before := looks.Load()
	eventually(t, time.Minute, func() error {
		if n := looks.Load() - before; n < 5 {
			return fmt.Errorf("%d looks for retired shards", n)
		}
		return nil
	})
	release()
	e.say(p, 5)
	e.routed("app", 10)
	eventually(t, time.Minute, func() error {
		now, err := e.reg.Shard(t.Context(), s.Ref())
		if err == nil && now.Status != registry.Sealed {
			err = fmt.Errorf("%s is %s", s.Name(), now.Status)
		}
		return err
	})
	if n, failed := starts.Load(), failures.Load(); n > 1+failed {
		t.Errorf("the lane began to seal %d times, and %d runs failed: it was started again while it started", n, failed)
	}
}
