package producer

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// Credentials that the server refuses for a while, as when they are rolled: the
// client would give up for good at the second refusal. The events wait.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	e := newEnv(t, topic, func(o *serverOptions, _ *jetstream.StreamConfig) { o.Username, o.Password = "almanac", "right" })
	var refused atomic.Int64
	p := e.connect(Config{
		Topic: "app", NATS: []nats.Option{nats.UserInfo("almanac", "right"), nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0)},
		Hooks: Hooks{OnError: func(err error) {
			if strings.Contains(strings.ToLower(err.Error()), "authorization") {
				refused.Add(1)
			}
		}},
	})
	e.must(p.Publish(e.ctx(), Event{Message: "before"}))
	rolled := e.opts
	rolled.Password = "another"
	e.must(e.srv.ReloadOptions(&rolled))
	p.Log(Event{Message: "meanwhile"})
	embeddedtest.Eventually(t, maxWait, func() error {
		if n := refused.Load(); n < 4 {
			return errors.New("not yet refused four times")
		}
		return nil
	})
	back := e.opts
	e.must(e.srv.ReloadOptions(&back))
	e.must(p.Publish(e.ctx(), Event{Message: "after"}))
	e.must(p.Flush(e.ctx()))
	if s := p.Stats(); s.Stored != 3 {
		t.Errorf("%d events are stored, want 3: %+v", s.Stored, s)
	}
}
