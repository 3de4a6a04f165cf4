package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// keyedBatch sends events of users under a key by a producer of its own, which reads the topic as it is now.
func (e *env) keyedBatch(key string, users ...string) (repeated bool) {
	e.t.Helper()
	p, err := producer.Connect(e.t.Context(), e.srv.NATSURL, producer.Config{Topic: "app"})
	if err != nil {
		e.t.Fatal(err)
	}
	b := p.NewBatch(key)
	for i, u := range users {
		ev := schemas.Event{
			Time: time.Date(2026, 10, 31, 23, 59, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute), UserID: u, Message: key,
			Attrs: []schemas.Attr{schemas.Int64("status", int64(i)), schemas.String("city", "x")},
		}
		if err := b.Add(ev); err != nil {
			e.t.Fatal(err)
		}
	}
	if err = b.Submit(e.t.Context()); err == nil {
		err = b.Wait(e.t.Context())
	}
	if err != nil {
		e.t.Fatal(err)
	}
	if err := p.Close(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	return b.Repeated()
}

// users repeats names.
func users(n int, names ...string) (out []string) {
	for range n {
		out = append(out, names...)
	}
	return out
}

// A keyed request that is sent again is stored once, after the topic got fields, also where they have it cut
// otherwise, and after NATS forgot the ids of its messages: what an erasure took of it, with its
// messages, does not come back. The same person's new events do.
func TestKeyedRequestIsStoredOnce(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	d := startOnDisk(t, topic)
	stopRouter, stopSink := d.router(), d.sink()
	const n = 3000
	d.keyedBatch("k-1", users(n, "ann", "bea")...)
	d.stored("app", 2*n, time.Minute)
	again := 0
	once := func(when string, bea uint64) {
		t.Helper()
		if again++; !d.keyedBatch("k-1", users(n, "ann", "bea")...) {
			t.Logf("%s: EVENTS did not know the request", when)
		}
		d.keyedBatch(fmt.Sprint("other-", again), "cat") // what is stored after it
		eventually(t, time.Minute, func() error {
			cats, err := d.ask("SELECT count() FROM %s WHERE user_id = 'cat'", d.table("app"))
			if err == nil && cats != uint64(again) {
				err = fmt.Errorf("%d of %d later events are stored", cats, again)
			}
			return err
		})
		d.verified("app")
		for user, want := range map[string]uint64{"ann": n, "bea": bea} {
			if got := d.count("SELECT count() FROM %s WHERE user_id = '%s'", d.table("app"), user); got != want {
				t.Fatalf("%s: %d events of %s, want %d", when, got, user, want)
			}
		}
	}
	restart := func() {
		t.Helper()
		stopRouter()
		stopSink()
		d.damaged(schemas.StreamEvents, false, func(block []byte) []byte { return block })
		stopRouter, stopSink = d.router(), d.sink()
	}
	once("at once", n)
	for i := range 3 {
		topic.Fields = append(topic.Fields, schemas.Field{Name: fmt.Sprintf("f%d", i), Type: "int64"})
	}
	topic.Fields = append(topic.Fields, schemas.Field{Name: "status", Type: "int64"})
	if _, _, err := d.reg.Apply(t.Context(), topic, false); err != nil {
		t.Fatal(err)
	}
	once("after the topic got fields", n)
	restart()
	once("after a restart", n)

	x := d.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"bea"}})
	if err == nil {
		job, err = x.Run(t.Context(), "app", job.ID)
	}
	if err == nil {
		job, err = x.Purge(t.Context(), "app", job.ID)
	}
	if err != nil || job.Purged.Events == 0 {
		t.Fatalf("%+v, %v", job, err)
	}
	once("after the erasure", 0)
	restart()
	once("after the erasure and a restart", 0)
	restart()
	once("and once more", 0)
	d.keyedBatch("k-2", "bea")
	d.stored("app", n+uint64(again)+1, time.Minute)
	d.verified("app")
}
