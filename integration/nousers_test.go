package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
	if err := hostile.FlushTimeout(time.Minute); err != nil {
		t.Fatal(err)
	}
	if m, err := heard.NextMsg(time.Millisecond); err == nil {
		t.Errorf("it heard another's answer on %s", m.Subject)
	}
	e.say(e.producer("app"), 5) // all of it still works
	e.stored("app", n+6, time.Minute)
	e.verify(n + 6)
}
