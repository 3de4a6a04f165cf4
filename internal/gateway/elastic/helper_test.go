package elastic

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/integration/faults"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
)

// bulkHelper gives documents as the helper of Elasticsearch's clients does: items of 429
// go into another request, and an answer of another status, or an item of another,
// drops what was in it.
type bulkHelper struct {
	t         *testing.T
	url       string
	refused   chan struct{} // gets one for each answer that had items of 429
	mu        sync.Mutex
	dropped   []string
	succeeded int
}

// send gives documents until each was taken or dropped.
func (h *bulkHelper) send(documents []string) {
	for len(documents) > 0 {
		var body strings.Builder
		for _, d := range documents {
			body.WriteString("{\"create\":{\"_index\":\"app\"}}\n" + d + "\n")
		}
		a := send(h.t, http.MethodPost, h.url+"/_bulk", map[string]string{"Content-Type": "application/x-ndjson"}, body.String())
		if a.Status != http.StatusOK || len(a.body.Items) != len(documents) {
			h.drop(fmt.Sprintf("%d %.200s", a.Status, string(a.Body)), documents...)
			return
		}
		var again []string
		for i, item := range a.body.Items {
			switch got := item["create"]; got.Status {
			case http.StatusCreated:
				h.mu.Lock()
				h.succeeded++
				h.mu.Unlock()
			case http.StatusTooManyRequests:
				again = append(again, documents[i])
			default:
				h.drop(got.Error.Reason, documents[i])
			}
		}
		if documents = again; len(again) > 0 {
			select {
			case h.refused <- struct{}{}:
			case <-h.t.Context().Done():
				return
			}
		}
	}
}

func (h *bulkHelper) drop(why string, documents ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped = append(h.dropped, fmt.Sprintf("%d documents: %s", len(documents), why))
}

// While NATS is away every item is 429, so that a client's helper drops no document: all
// are stored once NATS is back.
func TestHelperDropsNothingWithoutNATS(t *testing.T) {
	t.Parallel()
	var link *faults.Proxy
	env := pooltest.Start(t, func(c *pool.Config) {
		u, err := url.Parse(c.NC.ConnectedUrl())
		if err != nil {
			t.Fatal(err)
		}
		if link, err = faults.NewProxy(u.Host); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(link.Close)
		u.Host = link.Addr()
		if c.NC, err = nats.Connect(u.String(), nats.Timeout(20*time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.NC.Close)
		c.Hold = 50 * time.Millisecond
	}, topic("app"))
	s := httptest.NewServer(New(Config{Pool: env.Pool}))
	t.Cleanup(s.Close)
	h := &bulkHelper{t: t, url: s.URL, refused: make(chan struct{})}
	const senders, documents = 4, 50
	give := func(from int) *sync.WaitGroup {
		var all sync.WaitGroup
		for n := range senders {
			all.Go(func() {
				var mine []string
				for i := range documents {
					mine = append(mine, fmt.Sprintf(`{"@timestamp":"2026-11-20T10:00:00Z","message":"%d"}`, from+n*documents+i))
				}
				h.send(mine)
			})
		}
		return &all
	}
	// taken waits until all documents are taken. Where the machine is busy some are refused first.
	taken := func(all *sync.WaitGroup) {
		t.Helper()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			all.Wait()
		}()
		for deadline := time.After(2 * time.Minute); ; {
			select {
			case <-h.refused:
			case <-ended:
				return
			case <-deadline:
				t.Fatal("documents are refused although NATS is there")
			}
		}
	}
	taken(give(0))
	link.Cut()
	embeddedtest.Eventually(t, time.Minute, func() error { // the pool looks every moment
		if env.Pool.Stalled().Kind == pool.None {
			return fmt.Errorf("the pool does not know that NATS is away")
		}
		return nil
	})
	all := give(senders * documents)
	for range 3 * senders { // each is refused, and most again and again
		select {
		case <-h.refused:
		case <-time.After(time.Minute):
			t.Fatal("no request was refused item by item")
		}
	}
	link.Heal()
	taken(all)
	if len(h.dropped) > 0 || h.succeeded != 2*senders*documents {
		t.Fatalf("%d documents succeeded, want %d; dropped: %q", h.succeeded, 2*senders*documents, h.dropped)
	}
	seen := map[string]int{}
	for _, ev := range env.Events("app") {
		seen[ev.Message]++
	}
	if len(seen) != 2*senders*documents {
		t.Errorf("%d of %d documents are stored", len(seen), 2*senders*documents)
	}
}
