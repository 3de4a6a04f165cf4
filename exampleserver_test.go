package almanac_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/internal/timers/callback"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// up runs an Almanac with a router, a sink and a dispatcher of timers until the test ends.
func up(t *testing.T) almanac.Config {
	t.Helper()
	srv := embeddedtest.Start(t)
	reg, err := registry.Setup(t.Context(), srv.NC(), schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	db, err := tables.Open(srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.EnsureLedger(t.Context()); err != nil {
		t.Fatal(err)
	}
	nc, _ := embeddedtest.Dial(t, srv.NATSURL)
	r, err := router.New(t.Context(), nc, router.Config{Registry: reg, Discover: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sinks.New(t.Context(), nc, sinks.Config{Registry: reg, DB: db, Linger: 50 * time.Millisecond, Housekeeping: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	caller := callback.New(callback.Config{AllowCIDRs: []callback.Range{{Addresses: netip.MustParsePrefix("127.0.0.0/8"), Low: 1, High: 65535}}})
	t.Cleanup(caller.Close)
	d, err := dispatch.New(t.Context(), nc, dispatch.Config{Registry: reg, Caller: caller})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []func(context.Context) error{r.Run, s.Run, d.Run} {
		background(t, run)
	}
	return almanac.Config{NATS: srv.NATSURL, ClickHouse: srv.HTTPDSN(), Service: "test"}
}

// background runs f until the test ends.
func background(t *testing.T, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("a part ended with: %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("a part did not end when it was told")
		}
	})
}

// open opens a client until the test ends.
func open(t *testing.T, cfg almanac.Config) *almanac.Client {
	t.Helper()
	a, err := almanac.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, a) })
	return a
}

func closed(t *testing.T, a *almanac.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := a.Close(ctx); err != nil {
		t.Error(err)
	}
}

// onServers are the examples that need servers, which `go test` does not run by itself.
var onServers = map[string]func(){
	"Example":                       Example,
	"ExampleClient_Declare":         ExampleClient_Declare,
	"ExampleClient_Documents":       ExampleClient_Documents,
	"ExampleClient_Documents_batch": ExampleClient_Documents_batch,
	"ExampleClient_Timers":          ExampleClient_Timers,
	"ExampleClient_Query":           ExampleClient_Query,
	"ExampleClient_Replay":          ExampleClient_Replay,
	"ExampleClient_Usage":           ExampleClient_Usage,
	"ExampleClient_Trail":           ExampleClient_Trail,
}

// Every example prints what its comment says, on real servers.
func TestExamples(t *testing.T) {
	cfg := up(t)
	natsURL, clickHouse = cfg.NATS, cfg.ClickHouse
	called := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(called.Close)
	callbackURL = called.URL
	declared(t, open(t, cfg))
	want := printed(t, "example_test.go")
	maps.Copy(want, printed(t, "exampleparts_test.go"))
	for name := range want {
		if onServers[name] == nil {
			t.Errorf("%s says what it prints and is not in onServers", name)
		}
	}
	for name, f := range onServers {
		t.Run(name, func(t *testing.T) {
			if got := captured(t, f); got != want[name] || got == "" {
				t.Errorf("it printed\n%s\nand its comment says\n%s", got, want[name])
			}
		})
	}
}

// printed reads what the examples of a file say they print: their comments that begin with "Prints:".
func printed(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(fn.Name.Name, "Example") {
			continue
		}
		out[fn.Name.Name] = ""
		for _, c := range f.Comments {
			if text, ok := strings.CutPrefix(c.Text(), "Prints:\n"); ok && fn.Pos() < c.Pos() && c.End() < fn.End() {
				out[fn.Name.Name] = strings.TrimSpace(text)
			}
		}
	}
	return out
}

// captured returns what f writes to the standard output.
func captured(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	text := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		text <- string(b)
	}()
	func() {
		defer func() { os.Stdout = stdout; _ = w.Close() }()
		f()
	}()
	return strings.TrimSpace(<-text)
}

// declared makes the topics and the group of the examples.
func declared(t *testing.T, a *almanac.Client) {
	t.Helper()
	for _, topic := range []schemas.Topic{
		schemas.NewTopic("orders"), schemas.NewTopic("pages"), schemas.NewTopic("past"), schemas.NewTopicOf(schemas.KindDocument, "customers"), schemas.NewTopicOf(schemas.KindMeter, "bytes"), schemas.NewTopicOf(schemas.KindAudit, "iam"),
	} {
		if err := a.Declare(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.DeclareGroup(t.Context(), timersGroup("mails")); err != nil {
		t.Fatal(err)
	}
}
