package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// put writes an entry's bytes behind the registry's back, in both copies.
func (e *env) put(key, value string) {
	e.t.Helper()
	for _, kv := range e.buckets() {
		if _, err := kv.Put(e.t.Context(), key, []byte(value)); err != nil {
			e.t.Fatal(err)
		}
	}
}

// purgeKey loses an entry in both copies.
func (e *env) purgeKey(key string) {
	e.t.Helper()
	for _, kv := range e.buckets() {
		if err := kv.Purge(e.t.Context(), key); err != nil {
			e.t.Fatal(err)
		}
	}
}

// purgeStreams loses all that some streams have.
func (e *env) purgeStreams(names ...string) {
	e.t.Helper()
	for _, name := range names {
		s, err := e.js().Stream(e.t.Context(), name)
		if err == nil {
			err = s.Purge(e.t.Context())
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
}

// Where the registry lost a topic, or an entry of it cannot be read, verify names it,
// examines everything else all the same, and repair restores what it can.
func TestLostAndUnreadableKeys(t *testing.T) {
	t.Parallel()
	const n = 20
	for _, c := range []struct {
		name, words string
		damage      func(e *env, s registry.Shard)
		alone       bool // repair leaves it alone
		letter      bool // it may become a dead letter
	}{
		{"the topic's entry gone", "topic app: the registry does not know it", func(e *env, _ registry.Shard) {
			e.purgeKey(schemas.TopicKey("app"))
		}, false, false},
		{"every key gone", "topic app: the registry does not know it", func(e *env, _ registry.Shard) {
			e.purgeStreams(schemas.KVStream, schemas.CopiesStream)
		}, false, false},
		{"every key and SHARDS gone", "a table in ClickHouse", func(e *env, _ registry.Shard) {
			e.purgeStreams(schemas.KVStream, schemas.CopiesStream, schemas.StreamShards)
		}, true, false},
		{"the topic's entry garbage", "topics.app", func(e *env, _ registry.Shard) { e.put(schemas.TopicKey("app"), "\x00garbage") }, false, false},
		{"the topic's entry another's", "topics.app", func(e *env, _ registry.Shard) { e.put(schemas.TopicKey("app"), `{"name":"zoo"}`) }, false, false},
		{"a month's entry garbage", "app." + schemas.MonthOf(time.Now().UnixNano()).String(), func(e *env, s registry.Shard) {
			e.put(schemas.HeadKey("app", s.Month), "{")
		}, false, false},
		{"a shard's entry garbage", "is not readable", func(e *env, s registry.Shard) {
			e.put(schemas.ShardKey("app", s.Month, s.ID), `[1]`)
		}, false, false},
		{"a checkpoint garbage", "routed.app.0: checkpoint is not readable", func(e *env, _ registry.Shard) {
			if _, err := e.js().Publish(e.t.Context(), schemas.RoutedSubject("app", "0"), []byte("garbage")); err != nil {
				e.t.Fatal(err)
			}
		}, false, true},
		{"an erasure record garbage", "ledger.app", func(e *env, s registry.Shard) {
			e.put(schemas.ErasureRecordKey("app", s.Month, s.ID), "garbage")
		}, true, false},
		{"dead letters' entry garbage", "letters.app", func(e *env, _ registry.Shard) { e.put(schemas.LettersKey("app"), "garbage") }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			other := newTopic("other")
			other.Lanes = 1
			e := start(t, oneLaneTopic(), other)
			stopRouter, stopSink := e.router(), e.sink()
			e.say(e.producer("app"), n)
			e.say(e.producer("other"), n)
			e.stored("app", n, 30*time.Second)
			e.stored("other", n, 30*time.Second)
			e.verify(2 * n)
			one := e.shards("app")[0]
			stopRouter()
			stopSink()
			c.damage(e, one)
			e.named(c.words)
			rep, err := e.proof("")
			if err != nil {
				t.Fatal(err)
			}
			if shards := rep.Shards("other"); !strings.HasPrefix(c.name, "every key") && (len(shards) != 1 || shards[0].Stored != n) {
				t.Errorf("the other topic was not examined: %+v", shards)
			}
			if _, err := e.proof("app"); err != nil {
				t.Errorf("of the topic alone: %v", err)
			}
			plan := e.plan()
			if c.alone {
				return
			}
			e.carryOut(plan)
			e.verify(2 * n)
			e.router()
			e.sink()
			e.say(e.producer("app"), n)
			e.stored("app", 2*n, 30*time.Second)
			if !c.letter {
				e.verify(3 * n)
				return
			}
			eventually(t, 20*time.Second, func() error { // a router that meets it sets it aside
				rep, err := e.proof("")
				if err == nil && (!rep.OK() || rep.Dead > 1 || rep.Accepted != 3*n+rep.Dead) {
					err = fmt.Errorf("%+v %q", rep.Totals, rep.Problems)
				}
				return err
			})
		})
	}
}

// What producers sent to a topic whose entry is gone waits in EVENTS: it is evidence, also
// where nothing was ever routed.
func TestVerifyNamesLostTopicInEvents(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.say(e.producer("app"), 5)
	if rep := e.verify(5); rep.Pending != 5 {
		t.Errorf("%d events are pending, want 5", rep.Pending)
	}
	e.purgeKey(schemas.TopicKey("app"))
	e.named("5 messages in EVENTS; declare it again")
	// A client's own message under a topic that was never declared is none.
	if _, err := e.js().Publish(t.Context(), "events.never.2026-11.0", []byte(`{"message":"m"}`)); err != nil {
		t.Fatal(err)
	}
	rep, err := e.proof("")
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(rep.Problems, "\n"); strings.Contains(text, "never") {
		t.Errorf("a message under a topic that was never declared is called evidence: %s", text)
	}
	if _, _, err := e.reg.Apply(t.Context(), oneLaneTopic(), false); err != nil {
		t.Fatal(err)
	}
	e.router()
	e.sink()
	e.stored("app", 5, 30*time.Second)
}

// Only a frame in SHARDS says that its topic was declared: what a client published there,
// with some of a frame's headers or none, does not.
func TestLostWithGarbage(t *testing.T) {
	t.Parallel()
	e := start(t)
	js := e.js()
	subject := schemas.ShardSubject("gone", 202611, 7)
	publish := func(h nats.Header, data string) {
		msg := nats.NewMsg(subject)
		if msg.Data = []byte(data); h != nil {
			msg.Header = h
		}
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	lost := func(want bool) {
		t.Helper()
		for _, topic := range []string{"gone", ""} {
			got, err := registry.Lost(t.Context(), js, topic)
			if err != nil || got != want {
				t.Errorf("topic %q is lost: %v, %v; want %v", topic, got, err, want)
			}
		}
	}
	lost(false)
	f, payload := frameOf(t, newTopic("gone"), producer.Event{Message: "m"})
	placed := schemas.Placed{Frame: f, Pos: 1, SourceSeq: 1, ShardRows: 1, ShardBytes: uint64(len(payload))}
	publish(nil, "garbage")
	some := nats.Header{}
	f.SetHeaders(some)
	publish(some, string(payload)) // without a place
	zeroth := nats.Header{}
	placed.SetHeaders(zeroth)
	zeroth.Set(schemas.HeaderPos, "0")
	publish(zeroth, string(payload))
	lost(false)
	if _, err := registry.Setup(t.Context(), e.connect(), schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1}); err != nil {
		t.Errorf("a registry beside garbage is refused: %v", err)
	}
	for _, a := range e.plan().Actions {
		t.Errorf("repair would %s %s", a.Do, a.Where)
	}
	whole := nats.Header{}
	placed.SetHeaders(whole)
	publish(whole, string(payload))
	lost(true)
	if err := errors.Join(js.DeleteStream(t.Context(), schemas.KVStream), js.DeleteStream(t.Context(), schemas.CopiesStream)); err != nil {
		t.Fatal(err)
	}
	_, err := registry.Setup(t.Context(), e.connect(), schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1})
	if err == nil || !strings.Contains(err.Error(), "almanac repair") {
		t.Errorf("a registry beside frames of a lost topic: %v", err)
	}
}
