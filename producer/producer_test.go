package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// app has four lanes, so that a producer has several.
var app = func() schemas.Topic {
	t := schemas.NewTopic("app", schemas.Field{Name: "duration_ms", Type: schemas.TypeFloat64})
	t.Lanes = 4
	return t
}()

func TestLoggedEventsComeBackWhole(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app, withSync)
	p := e.connect(Config{Topic: "app", Service: "api"})
	at := time.Date(2024, 2, 29, 23, 59, 59, 999_999_999, time.UTC)
	want := map[string]Event{}
	for i := range 3000 {
		ev := Event{
			Time: at.Add(time.Duration(i%3) * time.Nanosecond), ID: schemas.NewID(int64(i) * 1e9), Level: "info", Type: "login",
			UserID: user(i % 7), TraceID: "t", SpanID: "s", Message: fmt.Sprint("event ", i),
			Attrs: []Attr{Float64("duration_ms", 1.5), String("ip", "10.0.0.1")},
		}
		p.Log(ev)
		ev.Service = "api"
		want[ev.ID.String()] = ev
	}
	if err := p.Flush(e.ctx()); err != nil {
		t.Fatal(err)
	}
	frames := e.frames(&app)
	seqs := map[int]uint64{}
	for _, f := range frames {
		if seqs[f.lane]++; f.head.Seq != seqs[f.lane] || f.head.Producer != p.ID() {
			t.Errorf("frame %d of producer %s in lane %d, want %d of %s", f.head.Seq, f.head.Producer, f.lane, seqs[f.lane], p.ID())
		}
		for _, ev := range f.events {
			if d := cmp.Diff(want[ev.ID.String()], ev, cmp.AllowUnexported(Attr{})); d != "" {
				t.Fatalf("(-want +got):\n%s", d)
			}
			delete(want, ev.ID.String())
		}
	}
	if len(want) != 0 {
		t.Errorf("%d events are missing", len(want))
	}
	s := p.Stats()
	checkSum(t, s)
	if s.Stored != 3000 || s.Frames != uint64(len(frames)) || s.BufferedBytes != 0 || s.InFlight != 0 {
		t.Errorf("%+v with %d frames", s, len(frames))
	}
}

func TestEventsGetTimeIDAndService(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	now := time.Date(2026, 11, 20, 12, 0, 0, 1, time.UTC)
	p := e.connect(Config{Topic: "app", Service: "api", Now: func() time.Time { return now }})
	p.Log(Event{Message: "hello"})
	p.Log(Event{Message: "hello", Service: "web"})
	if err := p.Flush(e.ctx()); err != nil {
		t.Fatal(err)
	}
	got := e.events(&app)
	if len(got) != 2 || got[0].Service != "api" || got[1].Service != "web" {
		t.Fatalf("%+v", got)
	}
	for _, ev := range got {
		if !ev.Time.Equal(now) || ev.ID.IsZero() {
			t.Errorf("time %s, id %s", ev.Time, ev.ID)
		}
	}
	if got[0].ID == got[1].ID {
		t.Error("two events have one id")
	}
}

func TestPublishReturnsWhenStored(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app, withSync)
	// A linger no test waits for: Publish must not either.
	p := e.connect(Config{Topic: "app", Linger: time.Minute})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if err := p.Publish(e.ctx(), Event{UserID: user(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(e.events(&app)); n != 200 {
		t.Fatalf("%d events are stored, want 200", n)
	}
	checkSum(t, p.Stats())
}

func TestSubmitCallsDoneOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	p := e.connect(Config{Topic: "app", BufferEvents: 64})
	var mu sync.Mutex
	calls := make([]int, 5000)
	for i := range calls {
		err := p.Submit(e.ctx(), Event{UserID: user(i)}, func(err error) {
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			calls[i]++
			mu.Unlock()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(e.ctx()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, n := range calls {
		if n != 1 {
			t.Fatalf("done of event %d was called %d times", i, n)
		}
	}
	if n := len(e.events(&app)); n != len(calls) {
		t.Fatalf("%d events are stored", n)
	}
}

func TestBadEventsAreRefusedByCause(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	var report strings.Builder
	p := e.connect(Config{Topic: "app", Stderr: &report})
	bad := []Event{
		{Message: strings.Repeat("x", schemas.MaxEventBytes+1)},
		{Time: time.Now().Add(48 * time.Hour)},
		{Time: time.Unix(0, 0)},
		{Time: time.Date(1066, 10, 14, 0, 0, 0, 0, time.UTC)},
		{Attrs: []Attr{String("", "x")}},
		{Attrs: make([]Attr, schemas.MaxAttrs+1)},
	}
	for _, ev := range bad {
		p.Log(ev)
		if err := p.Publish(e.ctx(), ev); schemas.Reason(err) == "" {
			t.Errorf("Publish: %v", err)
		}
	}
	if err := p.Close(e.ctx()); err != nil {
		t.Fatal(err)
	}
	s := p.Stats()
	checkSum(t, s)
	want := map[string]uint64{"event-too-large": 1, "time-too-far-ahead": 1, "time-zero": 1, "time-too-old": 1, "bad-attribute-name": 1, "too-many-attributes": 1}
	if d := cmp.Diff(want, s.Dropped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if s.Refused != uint64(len(bad)) {
		t.Errorf("%d refused", s.Refused)
	}
	if !strings.Contains(report.String(), "time-zero 1") {
		t.Errorf("stderr: %q", report.String())
	}
}

func TestCloseIsFinal(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	p := e.connect(Config{Topic: "app", Linger: time.Minute})
	p.Log(Event{Message: "last"})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := p.Close(e.ctx()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	p.Log(Event{Message: "too late"})
	if err := p.Publish(e.ctx(), Event{}); !errors.Is(err, ErrClosed) {
		t.Errorf("Publish: %v", err)
	}
	if err := p.Flush(e.ctx()); err != nil {
		t.Errorf("Flush: %v", err)
	}
	s := p.Stats()
	checkSum(t, s)
	if s.Stored != 1 || s.Dropped[CauseClosed] != 1 {
		t.Errorf("%+v", s)
	}
	if n := len(e.events(&app)); n != 1 {
		t.Errorf("%d events are stored, want 1", n)
	}
}

func TestCloseCountsWhatItCouldNotFlush(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	p := e.connect(Config{Topic: "app", Stderr: new(strings.Builder)})
	e.stopServer()
	for i := range 10 {
		p.Log(Event{UserID: user(i)})
	}
	told := make(chan error, 1)
	if err := p.Submit(e.ctx(), Event{}, func(err error) { told <- err }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(e.ctx(), 100*time.Millisecond)
	defer cancel()
	err := p.Close(ctx)
	if !errors.Is(err, ErrNotFlushed) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "11 events") {
		t.Errorf("Close: %v", err)
	}
	if err := <-told; !errors.Is(err, ErrClosed) {
		t.Errorf("done: %v", err)
	}
	s := p.Stats()
	checkSum(t, s)
	if s.Dropped[CauseClosed] != 11 || s.Buffered != 0 || s.BufferedBytes != 0 {
		t.Errorf("%+v", s)
	}
	e.startServer()
}

func TestConnectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	url := e.srv.ClientURL()
	for _, c := range []struct {
		url  string
		cfg  Config
		want error
		text string
	}{
		{url, Config{Topic: "nope"}, schemas.ErrUnknownTopic, "almanac topics apply"},
		{url, Config{Topic: "No"}, schemas.ErrTopicName, "No"},
		{url, Config{}, schemas.ErrTopicName, ""},
		{url, Config{Topic: "app", InFlight: 65}, ErrConfig, "InFlight is 65, it must be 1 to 64"},
		{nowhere, Config{Topic: "app"}, ErrConnect, "nats://127.0.0.1"},
	} {
		_, err := Connect(e.ctx(), c.url, c.cfg)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	if _, err := Connect(ctx, url, Config{Topic: "app"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestNewLeavesTheConnectionOpen(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	p, err := New(e.ctx(), e.nc, Config{Topic: "app"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(e.ctx(), Event{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(e.ctx()); err != nil {
		t.Fatal(err)
	}
	if s := e.nc.Status(); s != nats.CONNECTED {
		t.Errorf("the caller's connection is %s", s)
	}
}

func TestManyWritersManyMonths(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	p := e.connect(Config{Topic: "app", Policy: Block, BufferEvents: 5000})
	const writers, each = 8, 1000
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				p.Log(Event{Time: start.AddDate(0, i%30, 0), UserID: user(w*each + i)})
				if i%500 == 0 {
					checkSum(t, p.Stats())
				}
			}
		})
	}
	wg.Wait()
	if err := p.Flush(e.ctx()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, ev := range e.events(&app) {
		seen[ev.UserID] = true
	}
	if len(seen) != writers*each {
		t.Errorf("%d of %d events are stored", len(seen), writers*each)
	}
}

// A topic whose name is mistyped is refused with the one that was meant.
func TestConnectNamesTheNearestTopic(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	_, err := Connect(e.ctx(), e.srv.ClientURL(), Config{Topic: "ap"})
	if !errors.Is(err, ErrUnknownTopic) || !strings.Contains(err.Error(), "did you mean app? Declare it with") {
		t.Error(err)
	}
}
