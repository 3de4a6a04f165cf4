package lines

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
)

// A client that goes away within its body stores nothing, one that goes away while it
// waits has all its events stored, and neither keeps any of the room that others need.
func TestCancelledRequests(t *testing.T) {
	t.Parallel()
	const inFlight, clients, events = 8 << 20, 40, 3
	var held atomic.Bool
	release := make(chan struct{})
	taken := make(chan struct{}, 2*clients)
	e := pooltest.Start(t, func(c *pool.Config) {
		c.InFlight, c.Hold = inFlight, time.Minute
		through := embeddedtest.LinkProxy(t, c.NC.ConnectedUrl(), func(r embeddedtest.Request) embeddedtest.Fate {
			if held.Load() && strings.HasPrefix(r.Subject, "events.") {
				select {
				case taken <- struct{}{}:
				default:
				}
				<-release // the stream is slow
			}
			return embeddedtest.Fate{}
		}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} })
		var err error
		if c.NC, err = nats.Connect(through, nats.Timeout(20*time.Second), nats.MaxReconnects(-1)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.NC.Close)
	}, schemas.NewTopic("app"))
	var open sync.Once
	t.Cleanup(func() { open.Do(func() { close(release) }) })
	var begun, ended atomic.Int64
	in := New(Config{Pool: e.Pool})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/topics/{topic}/events", func(w http.ResponseWriter, r *http.Request) {
		begun.Add(1)
		defer ended.Add(1)
		in.ServeHTTP(w, r)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	post := func(ctx context.Context, body io.Reader) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/topics/app/events", body)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	lines := func(name string, n int) (b bytes.Buffer) {
		for i := range n {
			fmt.Fprintf(&b, "{\"message\":\"%s-%d\"}\n", name, i)
		}
		return b
	}

	// Within the body: some of it was sent, the rest never comes.
	var all sync.WaitGroup
	for i := range clients {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		all.Go(func() {
			if status, err := post(ctx, r); err == nil {
				t.Errorf("a request that was cancelled is answered with %d", status)
			}
		})
		half := lines(fmt.Sprint("half-", i), 1000)
		if _, err := half.WriteTo(w); err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = w.CloseWithError(context.Canceled)
	}
	all.Wait()
	embeddedtest.Eventually(t, time.Minute, func() error {
		if n := ended.Load(); n < clients {
			return fmt.Errorf("%d of %d requests cut off within their body have ended", n, clients)
		}
		return nil
	})

	// While they wait for the acknowledgement.
	held.Store(true)
	waits, goAway := context.WithCancel(t.Context())
	for i := range clients {
		all.Go(func() {
			body := lines(fmt.Sprint("whole-", i), events)
			if status, err := post(waits, &body); err == nil {
				t.Errorf("a request that was cancelled is answered with %d", status)
			}
		})
	}
	select {
	case <-taken: // a frame is on its way; the other requests wait for their turn
	case <-time.After(time.Minute):
		t.Fatal("no request was taken")
	}
	embeddedtest.Eventually(t, time.Minute, func() error {
		if n := begun.Load(); n < 2*clients {
			return fmt.Errorf("%d of %d requests have begun", n, 2*clients)
		}
		return nil
	})
	goAway()
	all.Wait()
	held.Store(false)
	open.Do(func() { close(release) })

	embeddedtest.Eventually(t, time.Minute, func() error {
		if n := ended.Load(); n < 2*clients {
			return fmt.Errorf("%d of %d cancelled requests have ended", n, 2*clients)
		}
		return nil
	})
	// One that needs nearly all the room there is gets it.
	body := lines("last-"+strings.Repeat("x", 1000), inFlight/weight/1100)
	if status, err := post(t.Context(), &body); err != nil || status != http.StatusOK {
		t.Fatalf("a request after those that were cancelled: %d, %v", status, err)
	}
	seen := map[string]int{}
	for _, ev := range e.Events("app") {
		seen[ev.Message]++
	}
	for name, times := range seen {
		if strings.HasPrefix(name, "half-") || times != 1 {
			t.Errorf("%s is stored %d times", name, times)
		}
	}
	for i := range clients {
		n := 0
		for k := range events {
			n += seen[fmt.Sprintf("whole-%d-%d", i, k)]
		}
		if n != 0 && n != events {
			t.Errorf("%d of %d events of a request are stored", n, events)
		}
	}
	if seen["last-"+strings.Repeat("x", 1000)+"-0"] != 1 {
		t.Error("the request that was not cancelled is not stored")
	}
}
