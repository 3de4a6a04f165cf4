package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/producer/spool"
	"github.com/almanac-events/almanac/schemas"
)

// spooling is a config with the policy Spool on a directory.
func spooling(dir string) Config {
	return Config{Topic: app.Name, Policy: Spool, SpoolDir: dir, SpoolSync: 5 * time.Millisecond, AckTimeout: 200 * time.Millisecond,
		Linger: 2 * time.Millisecond, Stderr: io.Discard}
}

// kill takes the server from a producer for good, in the middle of whatever it
// does, and returns a directory with its spool's files as they are then: what a
// kill leaves.
func kill(tb testing.TB, p *Producer, dir string) string {
	tb.Helper()
	p.sender.link.(*natsLink).nc.Close()
	left := tb.TempDir()
	from, to := filepath.Join(dir, app.Name), filepath.Join(left, app.Name)
	if err := os.Mkdir(to, 0o700); err != nil {
		tb.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names { // acks come after the segments by name, and must be older
		if filepath.Base(name) == "acks" {
			names = append([]string{name}, names...)
			break
		}
	}
	for i, name := range names {
		if i > 0 && filepath.Base(name) == "acks" && filepath.Base(names[0]) == "acks" {
			continue
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was settled meanwhile
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(name)), text, 0o600)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	at := func() context.Context { ctx, cancel := context.WithCancel(context.Background()); cancel(); return ctx }()
	_ = p.Close(at) // on its own directory
	return left
}

// onceEach fails a test unless each of so many messages is there once.
func onceEach(tb testing.TB, events []Event, want int) {
	tb.Helper()
	seen := map[string]int{}
	for _, ev := range events {
		if ev.Type != TypeDropped {
			seen[ev.Message]++
		}
	}
	lost, twice := 0, 0
	for i := range want {
		switch seen[fmt.Sprint(i)] {
		case 0:
			lost++
		case 1:
		default:
			twice++
		}
	}
	if lost > 0 || twice > 0 || len(seen) != want {
		tb.Fatalf("%d lost, %d twice, %d different of %d", lost, twice, len(seen), want)
	}
}

// Events logged while the server is away are on disk, survive the process, and
// are sent by the next one under the ids they had.
func TestSpoolOutlivesServerAndProcess(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	dir := t.TempDir()
	p := e.connect(spooling(dir))
	n := 0
	log := func(p *Producer, k int) {
		for range k {
			p.Log(Event{UserID: user(n), Message: fmt.Sprint(n)})
			n++
		}
	}
	log(p, 500)
	e.must(p.Flush(e.ctx()))
	e.stopServer()
	for range 50 {
		log(p, 100)
		eventually(t, "the events leave memory", func() bool { return p.Stats().Buffered <= 64*100 })
	}
	eventually(t, "all is on disk", func() bool { return p.Stats().Spool.Events == uint64(n-500) })
	checkSum(t, p.Stats())
	id := p.ID()
	dir = kill(t, p, dir)

	// The next one starts without a server, and goes on.
	q, err := Connect(e.ctx(), e.srv.ClientURL(), spooling(dir))
	e.must(err)
	if q.ID() == id {
		t.Fatal("a new process has the old id")
	}
	log(q, 700)
	eventually(t, "the second one's are on disk", func() bool { return q.Stats().Spool.Events == uint64(n-500) })
	e.startServer()
	e.must(q.Flush(e.ctx()))
	onceEach(t, e.events(&app), n)
	s := q.Stats()
	if s.Stored != 700 || s.Spool.Replayed != 5000 || s.Spool.Events != 0 || s.Spooled != 0 {
		t.Fatalf("%+v", s)
	}
	checkSum(t, s)
	// Everything acknowledged: no file of frames is left.
	eventually(t, "the segments are deleted", func() bool { return segments(t, dir) == 0 })
	e.must(q.Close(e.ctx()))
	for _, f := range e.frames(&app) {
		if f.head.Producer != id && f.head.Producer != q.ID() {
			t.Fatalf("frame of %s", f.head.Producer)
		}
	}
}

func segments(tb testing.TB, dir string) int {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*", "*.spool"))
	if err != nil {
		tb.Fatal(err)
	}
	return len(names)
}

// Publish never says stored before the server does, and says when the event is
// on disk only. Close says what is left there.
func TestSpoolPublishAndCloseSayWhatIsTrue(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	dir := t.TempDir()
	p := e.connect(spooling(dir))
	e.must(p.Flush(e.ctx()))
	e.stopServer()
	// More than a window, so that the one published is on disk only.
	ctx, cancel := context.WithCancel(e.ctx())
	var told []error
	var mu sync.Mutex
	for i := range 200 {
		e.must(p.Submit(e.ctx(), Event{UserID: "u", Message: fmt.Sprint(i)}, func(err error) {
			mu.Lock()
			told = append(told, err)
			mu.Unlock()
		}))
		n := uint64(i + 1)
		eventually(t, "on disk", func() bool { return p.Stats().Spool.Events == n })
	}
	result := make(chan error, 1)
	go func() { result <- p.Publish(ctx, Event{UserID: "u", Message: "200"}) }()
	eventually(t, "the published one is on disk", func() bool { return p.Stats().Spooled > 0 && p.Stats().Spool.Events == 201 })
	number := p.spool.Stats().Frames
	eventually(t, "and durable", func() bool { return p.spool.Safe() == number })
	p.sender.wake()
	select {
	case err := <-result:
		t.Fatalf("Publish returned without the server: %v", err)
	default:
	}
	cancel()
	if err := <-result; !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Fatalf("Publish: %v", err)
	}
	short, done := context.WithTimeout(e.ctx(), 10*time.Millisecond)
	defer done()
	err := p.Close(short)
	if !errors.Is(err, ErrSpooled) || !strings.Contains(err.Error(), "201 events") {
		t.Fatalf("Close: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 200 || slices.ContainsFunc(told, func(err error) bool { return !errors.Is(err, ErrSpooled) }) {
		t.Fatalf("Submit's callers were told %d times: %v", len(told), told[:1])
	}
	s := p.Stats()
	if s.Spooled != 201 || s.Buffered != 0 || s.DroppedTotal() != 0 {
		t.Fatalf("%+v", s)
	}
	checkSum(t, s)
	e.startServer()
	q := e.connect(spooling(dir))
	e.must(q.Flush(e.ctx()))
	onceEach(t, e.events(&app), 201)
}

// Close returns as soon as all is on disk, long before its context
// ends, and when the stream is back the next producer has it.
func TestCloseWaitsForTheDiskOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	dir := t.TempDir()
	p := e.connect(spooling(dir))
	e.must(p.Flush(e.ctx()))
	e.stopServer()
	for i := range 500 {
		p.Log(Event{UserID: user(i), Message: fmt.Sprint(i)})
	}
	long, cancel := context.WithTimeout(e.ctx(), 30*time.Second)
	defer cancel()
	if err := p.Close(long); !errors.Is(err, ErrSpooled) || !strings.Contains(err.Error(), "500 events") {
		t.Fatalf("Close: %v", err)
	}
	if long.Err() != nil {
		t.Error("Close waited until its context ended, though all was on disk")
	}
	e.startServer()
	q := e.connect(spooling(dir))
	e.must(q.Flush(e.ctx()))
	e.must(q.Close(e.ctx()))
	onceEach(t, e.events(&app), 500)
}

// What was sent a moment before Close, and has no answer yet, goes to disk like all else.
func TestCloseKeepsWhatWasJustSent(t *testing.T) {
	t.Parallel()
	for range 20 {
		cfg := spooling(t.TempDir())
		cfg.AckTimeout = time.Minute
		cfg, err := cfg.declared()
		if err != nil {
			t.Fatal(err)
		}
		opened, err := openSpool(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p := start(cfg, app, new(silentLink), withSpool(opened.Spool, true))
		p.Log(Event{UserID: "u", Message: "sent"})
		eventually(t, "it is sent", func() bool {
			return slices.ContainsFunc(p.lanes, func(l *lane) bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.window.count == 1
			})
		})
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Close(over); !errors.Is(err, ErrSpooled) || !strings.Contains(err.Error(), "1 events") {
			t.Fatalf("Close: %v", err)
		}
		s := p.Stats()
		if s.Spooled != 1 || s.DroppedTotal() != 0 {
			t.Fatalf("%+v", s)
		}
	}
}

// A spool that has reached its bound refuses new events, counted as such, and
// what it took stays.
func TestSpoolBound(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	cfg := spooling(t.TempDir())
	cfg.SpoolBytes = spool.MinBytes
	cfg.BufferBytes = 1 << 20
	p := e.connect(cfg)
	e.stopServer()
	noise := strings.Repeat("x", 1<<10)
	n := 0
	eventually(t, "the spool is full", func() bool {
		for range 500 {
			p.Log(Event{UserID: user(n), Message: fmt.Sprint(n), Attrs: []Attr{schemas.String("noise", scrambled(noise, n))}})
			n++
		}
		return p.Stats().Dropped[CauseSpoolFull] > 0
	})
	s := p.Stats()
	checkSum(t, s)
	if s.Spool.Bytes > spool.MinBytes || s.Spool.Bytes < spool.MinBytes/2 {
		t.Fatalf("%d bytes of %d", s.Spool.Bytes, spool.MinBytes)
	}
	e.startServer()
	e.must(p.Flush(e.ctx()))
	s = p.Stats()
	checkSum(t, s)
	var stored uint64
	seen := map[string]bool{}
	for _, ev := range e.events(&app) {
		if ev.Type == TypeDropped {
			continue
		}
		if seen[ev.Message] {
			t.Fatalf("%s twice", ev.Message)
		}
		seen[ev.Message] = true
		stored++
	}
	if want := uint64(n) - s.DroppedTotal(); stored != want {
		t.Fatalf("%d stored, want %d", stored, want)
	}
}

// scrambled is text that hardly compresses.
func scrambled(s string, seed int) string {
	b := []byte(s)
	x := uint32(seed)*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = 'A' + byte(x%50)
	}
	return string(b)
}

// A kill between a frame's answer and its segment's deletion makes the next
// producer send it again, under the same id, never further back than a router
// can tell.
func TestSpoolRepeatsWithinTheWindow(t *testing.T) {
	t.Parallel()
	for _, kills := range []int{0, 1, 7, 40, 90} {
		t.Run(fmt.Sprint(kills), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, app, func(_ *serverOptions, c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond })
			dir := t.TempDir()
			p := e.connect(spooling(dir))
			e.must(p.Flush(e.ctx()))
			e.stopServer()
			const frames = 300
			for i := range frames {
				p.Log(Event{UserID: "u", Message: fmt.Sprint(i)})
				n := uint64(i + 1)
				eventually(t, "on disk", func() bool { return p.Stats().Spool.Events == n })
			}
			dir = kill(t, p, dir)
			e.startServer()
			q := e.connect(spooling(dir))
			eventually(t, "some are answered", func() bool { return q.Stats().Spool.Replayed >= uint64(kills) })
			dir = kill(t, q, dir)
			r := e.connect(spooling(dir))
			e.must(r.Flush(e.ctx()))
			// What a router does with them.
			highest, seen := map[int]uint64{}, map[string]string{}
			for _, f := range e.frames(&app) {
				if f.head.Seq+schemas.MaxInFlight < highest[f.lane] {
					t.Fatalf("lane %d: seq %d after %d: a router cannot tell any more", f.lane, f.head.Seq, highest[f.lane])
				}
				highest[f.lane] = max(highest[f.lane], f.head.Seq)
				if was, ok := seen[f.msgID]; ok && was != f.events[0].Message {
					t.Fatalf("%s was %s and is %s", f.msgID, was, f.events[0].Message)
				}
				seen[f.msgID] = f.events[0].Message
			}
			if len(seen) != frames {
				t.Fatalf("%d frames, want %d", len(seen), frames)
			}
		})
	}
}
