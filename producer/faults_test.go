package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// checkOnce fails unless the stream has every wanted user exactly once, and
// every Nats-Msg-Id once.
func checkOnce(t *testing.T, e *env, want int) {
	t.Helper()
	seen, ids := map[string]int{}, map[string]int{}
	for _, f := range e.frames(&app) {
		ids[f.msgID]++
		for _, ev := range f.events {
			if ev.Type != TypeDropped {
				seen[ev.UserID]++
			}
		}
	}
	missing, twice := 0, 0
	for i := range want {
		switch seen[user(i)] {
		case 0:
			missing++
		case 1:
		default:
			twice++
		}
	}
	if missing > 0 || twice > 0 || len(seen) != want {
		t.Errorf("of %d events %d are missing, %d are there twice; %d in all", want, missing, twice, len(seen))
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("Nats-Msg-Id %s is there %d times", id, n)
		}
	}
}

// The server goes away and comes back, several times, under load.
func TestServerRestartsLoseNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app, withSync)
	p := e.connect(Config{Topic: "app", Policy: Block, BufferEvents: 3000, AckTimeout: 500 * time.Millisecond, Linger: time.Millisecond})
	const total = 60_000
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < total; i += 4 {
				p.Log(Event{UserID: user(i)})
			}
		})
	}
	for round := 1; round <= 3; round++ {
		eventually(t, "a part is stored", func() bool { return p.Stats().Stored > uint64(round*total/5) })
		e.stopServer()
		checkSum(t, p.Stats())
		e.startServer()
	}
	wg.Wait()
	if err := p.Close(e.ctx()); err != nil {
		t.Fatal(err)
	}
	s := p.Stats()
	checkSum(t, s)
	if s.Stored != total || s.Resent == 0 {
		t.Errorf("%+v", s)
	}
	checkOnce(t, e, total)
}

// A producer whose frames are in the stream, and whose answers were lost, sends
// them again and makes no second ones.
func TestLostAnswersMakeNoDuplicates(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	cfg, err := Config{Topic: "app", AckTimeout: 50 * time.Millisecond, Stderr: io.Discard}.declared()
	if err != nil {
		t.Fatal(err)
	}
	p := start(cfg, app, &deafLink{natsLink: newNatsLink(e.nc), deaf: 3})
	const total = 5000
	for i := range total {
		p.Log(Event{UserID: user(i)})
	}
	if err := p.Close(e.ctx()); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Stored != total || s.Resent == 0 {
		t.Errorf("%+v", s)
	}
	checkOnce(t, e, total)
}

// deafLink does not ask for an answer the first few times it sends a frame.
type deafLink struct {
	*natsLink
	deaf int
}

func (l *deafLink) publish(ln *lane, f *laneFrame) error {
	if f.attempts <= l.deaf {
		hearing := *l.natsLink
		hearing.inbox = "nowhere"
		return hearing.publish(ln, f)
	}
	return l.natsLink.publish(ln, f)
}

// A full stream refuses; frames wait, the buffer fills, drops are counted; when
// there is room again all that was kept is stored, and the report with it.
func TestFullStream(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app, withMaxBytes(64<<10))
	var mu sync.Mutex
	var heard error
	p := e.connect(Config{Topic: "app", BufferEvents: 2000, Stderr: io.Discard, Hooks: Hooks{OnError: func(err error) {
		mu.Lock()
		heard = err
		mu.Unlock()
	}}})
	refused := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return errors.Is(heard, ErrNotStored) && strings.Contains(heard.Error(), "maximum bytes exceeded")
	}
	logged := 0
	eventually(t, "the stream refuses, and OnError hears why; then the buffer is full", func() bool {
		full, before := refused(), p.Stats().Dropped[CauseBufferFull]
		for range 100 {
			p.Log(Event{UserID: user(logged), Message: fmt.Sprint(schemas.NewID(int64(logged)))})
			logged++
		}
		return full && p.Stats().Dropped[CauseBufferFull] == before+100 // no room came meanwhile
	})
	ctx, cancel := context.WithTimeout(e.ctx(), 50*time.Millisecond)
	defer cancel()
	if err := p.Publish(ctx, Event{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Publish into a full buffer: %v", err)
	}
	stream, err := e.js.Stream(e.ctx(), schemas.StreamEvents)
	e.must(err)
	cfg := stream.CachedInfo().Config
	cfg.MaxBytes = 1 << 30
	_, err = e.js.UpdateStream(e.ctx(), cfg)
	e.must(err)
	var reported int
	eventually(t, "the drops are reported as an event", func() bool {
		reported = 0
		for _, ev := range e.events(&app) {
			if ev.Type == TypeDropped {
				reported++
			}
		}
		return reported > 0
	})
	if err := p.Close(e.ctx()); err != nil {
		t.Fatal(err)
	}
	s := p.Stats()
	checkSum(t, s)
	if n := len(e.events(&app)); uint64(n) != s.Stored {
		t.Errorf("%d events are stored, counted %d", n, s.Stored)
	}
	if want := uint64(logged) + uint64(reported); s.Logged < want {
		t.Errorf("logged %d, want at least %d", s.Logged, want)
	}
}

// Without a stream no answer comes; with one, all is stored.
func TestStreamComesLater(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	info, err := e.js.Stream(e.ctx(), schemas.StreamEvents)
	e.must(err)
	cfg := info.CachedInfo().Config
	e.must(e.js.DeleteStream(e.ctx(), schemas.StreamEvents))
	p := e.connect(Config{Topic: "app"})
	published := make(chan error, 1)
	go func() { published <- p.Publish(e.ctx(), Event{UserID: user(0)}) }()
	eventually(t, "the frame was refused and sent again", func() bool { return p.Stats().Resent > 0 })
	_, err = e.js.CreateStream(e.ctx(), cfg)
	e.must(err)
	e.must(<-published)
	checkOnce(t, e, 1)
}

func TestMessageSizeOfTheStreamIsFinal(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app, func(_ *serverOptions, c *jetstream.StreamConfig) { c.MaxMsgSize = 4096 })
	p := e.connect(Config{Topic: "app", Stderr: io.Discard})
	noise := make([]byte, 0, 40_000)
	for i := range 1000 {
		noise = append(noise, schemas.NewID(int64(i)).String()...)
	}
	err := p.Publish(e.ctx(), Event{Message: string(noise)})
	if !errors.Is(err, ErrNotStored) || !strings.Contains(err.Error(), "message size exceeds maximum") {
		t.Errorf("Publish: %v", err)
	}
	s := p.Stats()
	checkSum(t, s)
	if s.Dropped[CauseMaxPayload] != 1 {
		t.Errorf("%+v", s)
	}
	e.must(p.Publish(e.ctx(), Event{Message: "small"}))
}

func TestClosedConnectionGivesUp(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	p, err := New(e.ctx(), e.nc, Config{Topic: "app", Stderr: io.Discard})
	e.must(err)
	e.nc.Close()
	if err := p.Publish(e.ctx(), Event{}); !errors.Is(err, ErrNotStored) {
		t.Errorf("Publish: %v", err)
	}
	p.Log(Event{})
	if err := p.Close(e.ctx()); !errors.Is(err, ErrNotFlushed) {
		t.Errorf("Close: %v", err)
	}
	s := p.Stats()
	checkSum(t, s)
	if s.DroppedTotal() < 2 {
		t.Errorf("%+v", s)
	}
}
