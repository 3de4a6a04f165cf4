package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// A client without credentials sends events, by the producer and by hand. Whatever else it asks for and says changes nothing.
func TestClientsWithoutCredentials(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithUsers(access.UserLocal))
	e := setUp(t, srv, newTopic("app"))
	e.router()
	e.sink()
	const n = 500
	nc := e.connectAs(access.UserLocal)
	p, err := producer.New(t.Context(), nc, producer.Config{Topic: "app", Service: "test", Policy: producer.Block})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		p.Log(producer.Event{Message: fmt.Sprint(i)})
	}
	e.flush(p)
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish(schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), 0), []byte(`{"message":"by hand"}`)); err != nil {
		t.Fatal(err)
	}
	e.stored("app", n+1, time.Minute)

	hostile := e.connectAs(access.UserLocal)
	heard, err := hostile.SubscribeSync(schemas.InboxPrefix(access.UserRouter) + ".>")
	if err != nil {
		t.Fatal(err)
	}
	anything := strings.NewReplacer("*", "x", ">", "x.y")
	for _, u := range access.NATSUsers() { // all that any user may say, and more
		for _, f := range append(u.Publish, u.Deny...) {
			if f == schemas.SubjectsLanes || f == ">" {
				continue
			}
			subject := anything.Replace(f)
			for _, body := range []string{"", `{}`, `{"filter":""}`, `{"seq":1}`, `junk`} {
				if err := hostile.PublishRequest(subject, hostile.NewInbox(), []byte(body)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	forged := answersElsewhere(t, hostile)
	if err := hostile.FlushTimeout(time.Minute); err != nil {
		t.Fatal(err)
	}
	if m, err := heard.NextMsg(time.Millisecond); err == nil {
		t.Errorf("it heard another's answer on %s", m.Subject)
	}
	e.stored("app", n+1+forged, time.Minute)
	e.say(e.producer("app"), 5) // all of it still works
	e.stored("app", n+6+forged, time.Minute)
	e.verify(n + 6 + forged)
	js, err := jetstream.New(srv.NC())
	if err != nil {
		t.Fatal(err)
	}
	shards, err := js.Stream(t.Context(), schemas.StreamShards)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := shards.Info(t.Context(), jetstream.WithSubjectFilter(schemas.SubjectsDead)); err != nil || len(info.State.Subjects) > 0 {
		t.Errorf("dead letters: %v, %v", info, err)
	}
}

// answersElsewhere asks for all that a client may ask for, with each subject that anybody may publish on as the subject of the answer:
// an event's acknowledgement, a descriptor, the state of a stream, and the empty answer to a read of what is not there, which would
// purge and delete. It returns how many events it sent.
func answersElsewhere(t *testing.T, nc *nats.Conn) (events uint64) {
	t.Helper()
	anything := strings.NewReplacer("*", "x", ">", "x.y")
	subjects := []string{schemas.KVSubject(schemas.TopicKey("app"))}
	for _, u := range access.NATSUsers() {
		for _, f := range append(u.Publish, u.Deny...) {
			if f != ">" {
				subjects = append(subjects, anything.Replace(f))
			}
		}
	}
	slices.Sort(subjects)
	for _, answer := range slices.Compact(subjects) {
		for _, m := range []nats.Msg{
			{Subject: schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), 0), Data: []byte(`{"message":"answer me"}`)},
			{Subject: "$JS.API.STREAM.INFO." + schemas.KVStream},
			{Subject: "$JS.API.DIRECT.GET." + schemas.KVStream + "." + schemas.KVSubject(schemas.TopicKey("app"))},
			{Subject: "$JS.API.DIRECT.GET." + schemas.KVStream + "." + schemas.KVSubject(schemas.TopicKey("none"))},
		} {
			m.Reply = answer
			if err := nc.PublishMsg(&m); err != nil {
				t.Fatal(err)
			}
		}
		events++
	}
	return events
}
