package integration

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// holdingDialer makes connections that hold what is published under a prefix, and all behind it, until they are released.
type holdingDialer struct {
	prefix         []byte
	once           sync.Once
	held, released chan struct{}
}

func newHolding(prefix string) *holdingDialer {
	return &holdingDialer{prefix: []byte(prefix), held: make(chan struct{}), released: make(chan struct{})}
}

func (d *holdingDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return holdingConn{c, d}, err
}

type holdingConn struct {
	net.Conn
	d *holdingDialer
}

func (c holdingConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, c.d.prefix) {
		c.d.once.Do(func() { close(c.d.held) })
		<-c.d.released
	}
	return c.Conn.Write(b)
}

// holding is a connection of the operator's that holds what is published under a prefix.
func (e *env) holding(prefix string) (*holdingDialer, *nats.Conn) {
	e.t.Helper()
	d := newHolding("HPUB " + prefix)
	return d, e.connectTo(e.srv.NATSURL, append(e.srv.As(access.UserOperator), nats.SetCustomDialer(d))...)
}

// TestWriteThatArrivesAfterARemoval has writers of documents, a lock and a timer whose messages stand still on their way until their topic is removed, and until the
// name is another topic's: that one neither has them nor routes or calls them, they do not stay, and the removal counts them.
func TestWriteThatArrivesAfterARemoval(t *testing.T) {
	t.Parallel()
	const docs, calls = "customers", "calls"
	e := running(t, docsTopic(), schemas.NewTopicOf("timer", calls))
	quick := fronts.Config{Timeout: time.Second}
	group := func() {
		if _, _, err := timers.ApplyGroup(t.Context(), e.reg, calls, "g", func(g *timer.Group) error { g.Slots = 16; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	draft := timers.Draft{Group: "g", ID: "late", Due: time.Now().Add(time.Hour), URL: "http://127.0.0.1:9/"}
	// write begins the writes and returns when they stand still.
	write := func() (release func()) {
		var released []chan struct{}
		begin := func(prefix string, do func(*nats.Conn) (func() error, error)) {
			d, nc := e.holding(prefix)
			released = append(released, d.released)
			f, err := do(nc)
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = f() }() // whatever it is answered: it stands still
			<-d.held
		}
		open := func(nc *nats.Conn) (*documents.Collection, error) {
			return documents.Open(t.Context(), nc, docs, documents.Config{Write: quick})
		}
		begin("docs.", func(nc *nats.Conn) (func() error, error) {
			c, err := open(nc)
			return func() error {
				_, err := c.Create(t.Context(), documents.Draft{ID: "late", Body: []byte(`{"of":"the removed topic"}`)})
				return err
			}, err
		})
		begin("doclocks.", func(nc *nats.Conn) (func() error, error) {
			c, err := open(nc)
			return func() error { _, err := c.Lock(t.Context(), "late", "test", time.Minute); return err }, err
		})
		begin("timers.", func(nc *nats.Conn) (func() error, error) {
			ts, err := timers.Open(t.Context(), nc, e.registry(nc), calls, timers.Config{Write: quick})
			return func() error { _, _, err := ts.Create(t.Context(), draft); return err }, err
		})
		return func() {
			for _, c := range released {
				close(c)
			}
		}
	}
	// landed waits until the writes have arrived, and are gone again.
	landed := func(n uint64) {
		for _, topic := range []string{docs, calls} {
			eventually(t, time.Minute, func() error {
				d, err := e.reg.Removal(t.Context(), topic)
				if want := map[string]uint64{docs: 2 * n, calls: n}[topic]; err == nil && d.Late.Messages != want {
					err = fmt.Errorf("the removal of %s counts %+v, and not %d messages", topic, d.Late, want)
				}
				return err
			})
		}
		for stream, filters := range map[string][]string{schemas.StreamDocs: {schemas.SubjectsDocs, schemas.SubjectsDocLocks}, schemas.StreamTimers: {schemas.SubjectsTimers}} {
			for _, filter := range filters {
				eventually(t, time.Minute, func() error {
					left, err := streams.Subjects(t.Context(), e.reg.JetStream(), stream, filter)
					for subject := range left {
						if bytes.HasSuffix([]byte(subject), []byte(".late")) && err == nil {
							err = fmt.Errorf("%s has %s", stream, subject)
						}
					}
					return err
				})
			}
		}
	}
	group()
	release := write()
	e.remove(docs)
	e.remove(calls)
	release()
	landed(1)

	again := docsTopic()
	e.apply(again)
	group()
	stale, err := timers.Open(t.Context(), e.connect(), e.reg.WithThird(e.db), calls, timers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	release = write() // of the second topic of each name
	e.remove(docs)
	e.remove(calls)
	e.apply(again)
	group()
	c := e.documents(docs)
	ts, err := timers.Open(t.Context(), e.connect(), e.reg.WithThird(e.db), calls, timers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	release()
	// From the moment they arrive nothing of them is seen: the id, the lock and the timer are free.
	if d, err := c.Create(t.Context(), documents.Draft{ID: "late2", Body: []byte(`{}`)}); err != nil || d.Version != 1 {
		t.Errorf("creating: %+v, %v", d, err)
	}
	landed(1)
	if d, err := c.Load(t.Context(), "late"); !errors.Is(err, documents.ErrNotFound) {
		t.Errorf("the new topic has the document: %+v, %v", d, err)
	}
	if l, err := c.Locked(t.Context(), "late"); err != nil || l != nil {
		t.Errorf("the new topic has the lock: %+v, %v", l, err)
	}
	if tm, err := ts.Get(t.Context(), "g", "late"); !errors.Is(err, timer.ErrNotFound) {
		t.Errorf("the new topic has the timer: %+v, %v", tm, err)
	}
	if d, err := c.Create(t.Context(), documents.Draft{ID: "late", Body: []byte(`{}`)}); err != nil || d.Version != 1 {
		t.Errorf("creating the document: %+v, %v", d, err)
	}
	if _, created, err := ts.Create(t.Context(), draft); err != nil || !created {
		t.Errorf("creating the timer: created %t, %v", created, err)
	}
	eventually(t, time.Minute, func() error { // a program that has it open since before
		if _, _, err := stale.Create(t.Context(), timers.Draft{Group: "g", ID: "stale", Due: draft.Due, URL: draft.URL}); !errors.Is(err, schemas.ErrUnknownTopic) {
			return fmt.Errorf("a timer for the topic that was removed: %w", err)
		}
		return nil
	})
	e.stored(docs, 2, time.Minute)
	e.stored(calls, 1, time.Minute)
	e.verified(docs)
	e.verified(calls)
}
