package integration

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	links "github.com/almanac-events/almanac/integration/faults"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// shortWindow is the duplicate window of EVENTS in these tests: what comes later
// than that, JetStream does not recognise.
const shortWindow = 100 * time.Millisecond

// events changes the stream EVENTS.
func (e *env) events(change func(*jetstream.StreamConfig)) {
	e.t.Helper()
	js, err := jetstream.New(e.srv.NC())
	if err != nil {
		e.t.Fatal(err)
	}
	s, err := js.Stream(e.t.Context(), schemas.StreamEvents)
	if err != nil {
		e.t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	change(&cfg)
	if _, err := js.UpdateStream(e.t.Context(), cfg); err != nil {
		e.t.Fatal(err)
	}
}

// wayTo is a link to the test's NATS that can be cut, and its URL.
func (e *env) wayTo() (*links.Proxy, string) {
	e.t.Helper()
	u, err := url.Parse(e.srv.NATSURL)
	if err != nil {
		e.t.Fatal(err)
	}
	p, err := links.NewProxy(u.Host)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(p.Close)
	u.Host = p.Addr()
	return p, u.String()
}

// once waits until a topic's table has n rows, and checks that they are n
// different events and nothing became a dead letter.
func (e *env) once(topic string, n int) {
	e.t.Helper()
	e.stored(topic, uint64(n), 30*time.Second)
	if got := e.count("SELECT uniqExact(message) FROM %s", e.table(topic)); got != uint64(n) {
		e.t.Errorf("%s: %d rows are %d different events", topic, n, got)
	}
	s, err := e.srv.NC().JetStream()
	if err != nil {
		e.t.Fatal(err)
	}
	if m, err := s.GetLastMsg(schemas.StreamShards, schemas.DeadSubject(topic)); !errors.Is(err, nats.ErrMsgNotFound) {
		e.t.Errorf("%s: a dead letter: %v, %v", topic, m, err)
	}
}

// outage is how long producers of TestOutageBeyondTheDuplicateWindow are kept from the
// stream, and that stream's duplicate window: both are short, unless ALMANAC_OUTAGE asks
// for an outage by the clock (15m) under the window that everybody has:
//
//	ALMANAC_OUTAGE=15m go test -parallel 3 -timeout 60m -v -run TestOutageBeyondTheDuplicateWindow ./integration
func outage(t *testing.T) (lasts, window time.Duration) {
	t.Helper()
	text := os.Getenv("ALMANAC_OUTAGE")
	if text == "" {
		return 5 * shortWindow, shortWindow
	}
	lasts, err := time.ParseDuration(text)
	if err != nil || lasts <= schemas.DedupWindow {
		t.Fatalf("ALMANAC_OUTAGE is %q, it must be a time longer than the duplicate window, %s", text, schemas.DedupWindow)
	}
	return lasts, schemas.DedupWindow
}

// A producer that is refused, cut off or slowed down past the duplicate window,
// and then sends all it has again, is stored once: each frame that was stored
// without the producer hearing of it is refused by the router, which remembers
// its seq.
func TestOutageBeyondTheDuplicateWindow(t *testing.T) {
	t.Parallel()
	const n = 3000
	lasts, window := outage(t)
	for name, outage := range map[string]struct {
		begin, end func(e *env, p *links.Proxy)
	}{
		"refused": {
			func(e *env, _ *links.Proxy) { e.events(func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 10 }) },
			func(e *env, _ *links.Proxy) { e.events(func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 30 }) },
		},
		// In the middle of a message, so that frames before it are stored and
		// their answers lost.
		"cut": {
			func(_ *env, p *links.Proxy) { p.CutAfter(20_000, func() { go p.Cut() }) },
			func(_ *env, p *links.Proxy) { p.Heal() },
		},
		// Every answer comes after its frame was sent again, and, where the window is
		// short, every frame after the window that knew it. NATS gives a link up that
		// does not answer for some minutes.
		"slowed": {
			func(_ *env, p *links.Proxy) { p.Slow(min(3*window, 30*time.Second), 0) },
			func(_ *env, p *links.Proxy) { p.Heal() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := newTopic("app")
			topic.Lanes = 2
			e := start(t, topic)
			e.events(func(c *jetstream.StreamConfig) { c.Duplicates = window })
			e.router()
			e.sink()
			door, url := e.wayTo()
			p, err := producer.Connect(t.Context(), url, producer.Config{Topic: "app", Policy: producer.Block, Linger: -1, AckTimeout: 50 * time.Millisecond,
				NATS: []nats.Option{nats.ReconnectWait(10 * time.Millisecond)}})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			outage.begin(e, door)
			pace := time.NewTicker(3 * time.Millisecond)
			for i := range n {
				if err := p.Submit(t.Context(), producer.Event{UserID: fmt.Sprint("u-", i%7), Message: fmt.Sprint(i)}, nil); err != nil {
					t.Fatal(err)
				}
				if i%100 == 99 { // frames, not one for all
					<-pace.C
				}
			}
			pace.Stop()
			eventually(t, lasts+20*time.Second, func() error {
				if s := p.Stats(); s.Resent < 20 || time.Since(began) < lasts {
					return fmt.Errorf("%d resent", s.Resent)
				}
				return nil
			})
			outage.end(e, door)
			e.flush(p)
			s := p.Stats()
			if s.Stored != n || s.DroppedTotal() != 0 {
				t.Errorf("%+v", s)
			}
			e.once("app", n)
			e.verify(n)
			t.Logf("%d frames, %d sent again over %s", s.Frames, s.Resent, time.Since(began).Round(time.Millisecond))
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Killed in the middle of an outage, started without a server, killed again,
// killed while it sends what was left: every event that was on disk is stored,
// once.
func TestSpoolKilled(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	e.events(func(c *jetstream.StreamConfig) { c.Duplicates = shortWindow })
	e.router()
	e.sink()
	door, url := e.wayTo()
	spool := t.TempDir()
	run := func(first, last int) *process {
		return e.process(part{Role: "producer", NATS: url, SpoolDir: spool, First: first, Last: last})
	}
	says := func(p *process, word string) {
		t.Helper()
		eventually(t, 20*time.Second, func() error {
			if text := p.said.text(); !strings.Contains(text, word) {
				return fmt.Errorf("the producer did not say %q but %q", word, text)
			}
			return nil
		})
	}
	kill := func(p *process) {
		t.Helper()
		p.kill()
		p.killed()
	}
	// The link breaks in the middle of a frame, and the process with it.
	door.CutAfter(40_000, func() { go door.Cut() })
	p := run(0, 5000)
	says(p, "safe 5000")
	kill(p)
	p = run(5000, 7000) // no server answers
	says(p, "safe 2000")
	kill(p)
	for range 3 {
		door.Heal()
		cut := make(chan struct{})
		door.CutAfter(30_000, func() { close(cut); go door.Cut() })
		p = run(0, 0)
		select {
		case <-cut:
		case <-p.gone:
			t.Fatalf("it ended: %s", p.said.text())
		case <-time.After(maxWait * 10 * time.Second):
			t.Fatalf("nothing was sent: %s", p.said.text())
		}
		kill(p)
	}
	door.Heal()
	p = run(7000, 7500)
	says(p, "flushed")
	e.once("app", 7500)
	e.verify(7500)
}

// runSpooling is a producer's process: it logs, says when all of it is on disk or
// stored, and when all is stored.
func runSpooling(ctx context.Context, spec part) error {
	p, err := producer.Connect(ctx, spec.NATS, producer.Config{
		Topic: "app", Policy: producer.Spool, SpoolDir: spec.SpoolDir, Linger: time.Millisecond,
		NATS: []nats.Option{nats.ReconnectWait(20 * time.Millisecond)},
	})
	if err != nil {
		return err
	}
	before := p.Stats().Spool.Events
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := spec.First; i < spec.Last; i++ {
		// What hardly compresses, so that the link is cut among many frames.
		ev := producer.Event{UserID: fmt.Sprint("u-", i), Message: fmt.Sprint(i), TraceID: schemas.NewID(int64(i)).String()}
		p.Log(ev)
		if i%50 == 0 {
			<-tick.C
		}
	}
	for n := uint64(spec.Last - spec.First); ; <-tick.C {
		s := p.Stats()
		// With a server, what was stored before the last kill leaves the spool's
		// count without being replayed; without one, frames stay in the buffer.
		if s.Buffered == 0 || s.Stored+s.Spool.Replayed+s.Spool.Events >= n+before {
			_, _ = fmt.Fprintln(os.Stderr, "safe", n)
			break
		}
	}
	if err := p.Flush(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(os.Stderr, "flushed")
	<-ctx.Done()
	return nil
}
