package almanac_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac"
	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

func timersGroup(name string) timers.GroupSpec { return timers.GroupSpec{Name: name, Slots: 4} }

// Each part that the front door gives works, and a caller that asks again gets the same producer.
func TestClientGivesEveryPart(t *testing.T) {
	t.Parallel()
	a, ctx := open(t, up(t)), t.Context()
	declared(t, a)
	var wg sync.WaitGroup
	seen := make([]*producer.Producer, 8)
	for i := range seen {
		wg.Go(func() {
			p, err := a.Producer(ctx, "orders")
			if err != nil {
				t.Error(err)
				return
			}
			p.Log(producer.Event{Type: "placed", Message: fmt.Sprint(i)})
			seen[i] = p
		})
	}
	wg.Wait()
	for _, p := range seen {
		if p == nil || p != seen[0] {
			t.Fatalf("several producers of one topic: %p", seen)
		}
	}
	ok(t, seen[0].Flush(ctx))
	r := must(a.Query(ctx))(t)
	if page := must(r.Query(ctx, query.Request{Topic: "orders"}))(t); len(page.Events) != len(seen) || !strings.Contains(string(page.Events[0]), `"service":"test"`) {
		t.Errorf("%s", page.Events)
	}
	embeddedtest.Eventually(t, time.Minute, func() error { // a replay has what was routed
		job, err := must(a.Replay(ctx))(t).Begin(ctx, replay.Request{Topic: "orders"})
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if _, err = job.Run(ctx, &out, replay.Pace{}); err == nil && bytes.Count(out.Bytes(), []byte("\n")) != len(seen) {
			err = fmt.Errorf("replayed %q", out.String())
		}
		return err
	})

	docs := must(a.Documents(ctx, "customers"))(t)
	if d := must(docs.Create(ctx, documents.Draft{ID: "c-1", Body: []byte(`{}`)}))(t); d.By != "test" {
		t.Errorf("%+v", d)
	}
	if page := must(docs.List(ctx, documents.Selection{All: true}))(t); len(page.Documents) != 1 {
		t.Errorf("%+v", page)
	}
	group := must(a.Timers(ctx, "mails"))(t)
	if _, _, err := group.Create(ctx, timers.Draft{Group: "other", ID: "a", Due: time.Now().Add(time.Hour), URL: "http://127.0.0.1/"}); err != nil {
		t.Fatal(err)
	}
	if page := must(group.List(ctx, timers.Filter{}))(t); len(page.Timers) != 1 || page.Timers[0].Group != "mails" {
		t.Errorf("%+v", page)
	}
	if _, err := a.Timers(ctx, "unknown"); !isCode(err, timer.CodeUnknownGroup) {
		t.Errorf("an unknown group: %v", err)
	}

	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	bytesOf := must(a.Producer(ctx, "bytes"))(t)
	ok(t, bytesOf.Publish(ctx, must(meter.Diff{Meter: "bytes", Space: "s", Cause: "c", Delta: 7, Time: at}.Event())(t)))
	embeddedtest.Eventually(t, time.Minute, func() error {
		rep, err := must(a.Usage(ctx))(t).Report(ctx, usage.Request{Topic: "bytes", From: at, To: at.Add(time.Second)})
		if err == nil && (len(rep.Bills) != 1 || rep.Bills[0].Usage != "7000") {
			err = fmt.Errorf("%+v", rep)
		}
		return err
	})
	ok(t, audit.New(must(a.Producer(ctx, "iam"))(t)).Before(ctx, audit.Change{Request: "r", Scope: "p", Type: "role", Resource: "x", Actor: "u"}))
	if page := must(must(a.Trail(ctx))(t).Page(ctx, trail.Request{Topic: "iam", Scopes: []string{"p"}, RequestID: "r"}))(t); len(page.Entries) != 1 {
		t.Errorf("%+v", page)
	}
}

// Without ClickHouse a program logs, and writes and loads documents and timers. Reads say what is missing.
func TestClientWithoutClickHouse(t *testing.T) {
	t.Parallel()
	cfg := up(t)
	cfg.ClickHouse = ""
	a, ctx := open(t, cfg), t.Context()
	declared(t, a)
	ok(t, must(a.Producer(ctx, "orders"))(t).Publish(ctx, producer.Event{Message: "x"}))
	docs := must(a.Documents(ctx, "customers"))(t)
	must(docs.Put(ctx, documents.Draft{ID: "c-1", Body: []byte(`{}`)}))(t)
	must(docs.Load(ctx, "c-1"))(t)
	if _, err := docs.List(ctx, documents.Selection{All: true}); !errors.Is(err, documents.ErrArchive) {
		t.Errorf("a list of documents: %v", err)
	}
	group := must(a.Timers(ctx, "mails"))(t)
	if _, _, err := group.Create(ctx, timers.Draft{ID: "a", Due: time.Now().Add(time.Hour), URL: "http://127.0.0.1/"}); err != nil {
		t.Error(err)
	}
	must(group.Get(ctx, "a"))(t)
	for name, err := range map[string]error{
		"query": second(a.Query(ctx)), "replay": second(a.Replay(ctx)), "usage": second(a.Usage(ctx)), "trail": second(a.Trail(ctx)),
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(err, almanac.ErrNoClickHouse) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// What Declare finds stays as it is, and another kind is refused.
func TestClientDeclares(t *testing.T) {
	t.Parallel()
	a, ctx := open(t, up(t)), t.Context()
	if _, err := a.Producer(ctx, "app"); !errors.Is(err, almanac.ErrUnknownTopic) {
		t.Errorf("an unknown topic: %v", err)
	}
	kept := schemas.NewTopic("app")
	kept.KeepDays = 30
	for range 2 {
		ok(t, a.Declare(ctx, kept))
		ok(t, a.Declare(ctx, schemas.Topic{Name: "app"}))
	}
	if topic := must(a.Producer(ctx, "app"))(t).Topic(); topic.KeepDays != 30 {
		t.Errorf("a second declaration changed %+v", topic)
	}
	if err := a.Declare(ctx, schemas.NewTopicOf(schemas.KindMeter, "app")); !errors.Is(err, almanac.ErrWrongKind) {
		t.Errorf("another kind: %v", err)
	}
	for range 2 {
		ok(t, a.DeclareGroup(ctx, timersGroup("mails")))
		ok(t, a.DeclareGroup(ctx, timers.GroupSpec{Name: "mails", Slots: 8}))
	}
	if err := a.DeclareGroup(ctx, timers.GroupSpec{Topic: "app", Name: "mails"}); !errors.Is(err, almanac.ErrRequest) {
		t.Errorf("a group of a topic of another kind: %v", err)
	}
}

// After Close everything is ErrClosed, what was logged is stored, and nothing goes on in the background.
func TestClientCloses(t *testing.T) {
	t.Parallel()
	cfg := up(t)
	a, other, ctx := open(t, cfg), open(t, cfg), t.Context()
	declared(t, a)
	p := must(a.Producer(ctx, "orders"))(t)
	must(a.Query(ctx))(t)
	p.Log(producer.Event{Message: "the last"})
	closed(t, a)
	closed(t, a)
	if page := must(must(other.Query(ctx))(t).Query(ctx, query.Request{Topic: "orders"}))(t); len(page.Events) != 1 {
		t.Errorf("Close lost what was logged: %s", page.Events)
	}
	for name, err := range map[string]error{
		"producer": second(a.Producer(ctx, "orders")), "documents": second(a.Documents(ctx, "customers")), "timers": second(a.Timers(ctx, "mails")),
		"query": second(a.Query(ctx)), "replay": second(a.Replay(ctx)), "declare": a.Declare(ctx, schemas.NewTopic("b")), "group": a.DeclareGroup(ctx, timersGroup("b")),
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(err, almanac.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// What cannot be opened is refused with what to do.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	bare := embeddedtest.Start(t, embeddedtest.WithoutClickHouse()).NATSURL
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		cfg  almanac.Config
		is   error
		says string
	}{
		"no address":      {t.Context(), almanac.Config{}, almanac.ErrConfig, "nats://"},
		"a topic":         {t.Context(), almanac.Config{NATS: bare, Producer: producer.Config{Topic: "app"}}, almanac.ErrConfig, "Producer.Topic"},
		"ClickHouse":      {t.Context(), almanac.Config{NATS: bare, ClickHouse: "127.0.0.1:9000"}, almanac.ErrConfig, "http://"},
		"without Almanac": {t.Context(), almanac.Config{NATS: bare}, almanac.ErrNoAlmanac, "almanac up"},
		"no server":       {t.Context(), almanac.Config{NATS: "nats://u:secret@" + embeddedtest.FreeAddress(t)}, nil, "NATS at"},
		"ended context":   {ended, almanac.Config{NATS: bare}, context.Canceled, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := almanac.Open(c.ctx, c.cfg)
			if err == nil {
				closed(t, a)
				t.Fatal("it was opened")
			}
			if c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
}

// What packages that events are made with link does not grow by the front door.
func TestProducerDoesNotLinkTheFrontDoor(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./producer", "./meter", "./metric", "./audit").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if pkg == "github.com/almanac-events/almanac" || strings.HasPrefix(pkg, "github.com/ClickHouse/") || strings.HasSuffix(pkg, "almanac/query") {
			t.Errorf("they link %s", pkg)
		}
	}
}

func isCode(err error, code timer.Code) bool {
	r := (*timer.Refusal)(nil)
	return errors.As(err, &r) && r.Code == code
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func second[T any](_ T, err error) error { return err }
