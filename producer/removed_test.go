package producer

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// A producer whose topic was removed refuses every event, gives up what waits, and counts both: also one that was cut off
// meanwhile, and one whose topic was declared again since. A topic that the registry merely lost goes on.
func TestRemovedTopic(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(e *env, kv jetstream.KeyValue, p *Producer){
		"heard": func(e *env, kv jetstream.KeyValue, _ *Producer) {
			e.must(kv.Delete(e.ctx(), schemas.TopicKey("app")))
		},
		"cut off meanwhile": func(e *env, kv jetstream.KeyValue, p *Producer) {
			link := p.sender.link.(*natsLink)
			e.must(link.topic.Unsubscribe())
			e.must(kv.Delete(e.ctx(), schemas.TopicKey("app")))
			e.must(link.nc.ForceReconnect())
		},
		"declared again": func(e *env, kv jetstream.KeyValue, _ *Producer) {
			again := schemas.NewTopic("app")
			again.Version, again.First = 2, 2
			text, err := json.Marshal(again)
			e.must(err)
			_, err = kv.Put(e.ctx(), schemas.TopicKey("app"), text)
			e.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, schemas.NewTopic("app"))
			kv, err := e.js.KeyValue(e.ctx(), schemas.Bucket)
			e.must(err)
			p := e.connect(Config{Topic: "app"})
			e.must(p.Publish(e.ctx(), Event{Message: "before"}))
			p.paused.Store(true)
			waits := make(chan error, 1)
			e.must(p.Submit(e.ctx(), Event{Message: "waits"}, func(err error) { waits <- err }))
			_, err = kv.Put(e.ctx(), schemas.RemovalKey("app"), []byte("{}"))
			e.must(err)
			remove(e, kv, p)
			eventually(t, "refused", func() bool { return p.gone.Load() != nil })
			if err := <-waits; !errors.Is(err, ErrUnknownTopic) {
				t.Errorf("an event that waited: %v", err)
			}
			if err := p.Publish(e.ctx(), Event{Message: "after"}); !errors.Is(err, ErrUnknownTopic) {
				t.Errorf("an event since: %v", err)
			}
			p.Log(Event{Message: "after"})
			e.must(p.Flush(e.ctx()))
			if s := p.Stats(); s.Stored != 1 || s.Dropped[CauseTopicRemoved] != 2 || s.Buffered != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("lost by the registry", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, schemas.NewTopic("app"))
		kv, err := e.js.KeyValue(e.ctx(), schemas.Bucket)
		e.must(err)
		p := e.connect(Config{Topic: "app"})
		e.must(kv.Delete(e.ctx(), schemas.TopicKey("app")))
		if gone, err := p.watch.ask(e.ctx()); gone || err != nil {
			t.Errorf("gone: %t, %v", gone, err)
		}
		e.must(p.Publish(e.ctx(), Event{Message: "goes on"}))
	})
	t.Run("spooled", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, schemas.NewTopic("app"))
		kv, err := e.js.KeyValue(e.ctx(), schemas.Bucket)
		e.must(err)
		cfg := spooling(t.TempDir())
		p := e.connect(cfg)
		p.confirmed.Store(false)
		p.Log(Event{Message: "spooled"})
		eventually(t, "on disk", func() bool { return p.Stats().Spool.Events == 1 })
		_, err = kv.Put(e.ctx(), schemas.RemovalKey("app"), []byte("{}"))
		e.must(err)
		e.must(kv.Delete(e.ctx(), schemas.TopicKey("app")))
		eventually(t, "refused", func() bool { return p.gone.Load() != nil })
		if err := p.Publish(e.ctx(), Event{Message: "after"}); !errors.Is(err, ErrUnknownTopic) {
			t.Errorf("an event since: %v", err)
		}
		if err := p.Close(e.ctx()); !errors.Is(err, ErrSpooled) {
			t.Errorf("closing: %v", err)
		}
		again := schemas.NewTopic("app") // of the name's next topic what was spooled is none
		again.Version, again.First = 2, 2
		text, err := json.Marshal(again)
		e.must(err)
		_, err = kv.Put(e.ctx(), schemas.TopicKey("app"), text)
		e.must(err)
		next := e.connect(cfg)
		e.must(next.Publish(e.ctx(), Event{Message: "new"}))
		eventually(t, "the spool is read", func() bool { return next.Stats().Spool.Events == 0 })
		if s := next.Stats(); s.Stored != 1 || s.Spool.Dropped != 1 {
			t.Errorf("%+v", s)
		}
	})
}
