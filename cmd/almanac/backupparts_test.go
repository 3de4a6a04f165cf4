package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/timers"
)

// furtherParts are a further router, sink, gateway and dispatcher of an up, and what goes through them.
type furtherParts struct {
	b     *box
	f     *flow
	parts []*daemon
	hook  *httptest.Server
	mu    sync.Mutex
	calls map[string]bool // paths that were called
	stop  func()
}

// furtherParts starts them. Blocks of a further writer go through the gateway until it is killed.
func (b *box) furtherParts(t *testing.T, f *flow) *furtherParts {
	t.Helper()
	p := &furtherParts{b: b, f: f, calls: map[string]bool{}}
	p.hook = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls[r.URL.Path] = true
	}))
	t.Cleanup(p.hook.Close)
	at := embeddedtest.FreeAddress(t)
	for _, args := range [][]string{{"router"}, {"sink"}, {"timers", "run"}, {"gateway", "--http", at, "--otlp-http", "off", "--otlp-grpc", "off"}} {
		d := b.background(append(args, "--log-format", "json")...)
		d.says(`"message":"ready"`)
		p.parts = append(p.parts, d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.write(ctx, at, posted("http://"+at+"/v1/topics/app/events"))
	}()
	p.stop = sync.OnceFunc(func() {
		cancel()
		f.rest.Broadcast()
		<-ended
	})
	t.Cleanup(p.stop)
	embeddedtest.Eventually(t, maxWait, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for name, o := range f.blocks {
			if strings.HasPrefix(name, at) && !o.acked.IsZero() {
				return nil
			}
		}
		return errors.New("no block was acknowledged by the gateway")
	})
	return p
}

// posted sends the events of a block in one request.
func posted(to string) func(ctx context.Context, name string, o *block) error {
	return func(ctx context.Context, name string, o *block) error {
		var body strings.Builder
		for i := range o.rows {
			fmt.Fprintf(&body, "{\"message\":\"%s/%d\",\"user_id\":%q}\n", name, i, o.person)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body.String()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			return errors.New(resp.Status)
		}
		return nil
	}
}

// kill kills one after the other, in any order, while events flow. A timer that is due meanwhile is called.
func (p *furtherParts) kill(random *rand.Rand, timer string) {
	t := p.b.t
	t.Helper()
	p.b.ok("", "timers", "create", "mails", timer, "--due", "+1s", "--url", p.hook.URL+"/"+timer)
	for _, i := range random.Perm(len(p.parts)) {
		if code := p.parts[i].stop(syscall.SIGKILL); code != -1 {
			t.Errorf("a part ended by itself with %d: %s", code, p.parts[i].stderr())
		}
		p.f.grown(20)
	}
	p.stop()
	embeddedtest.Eventually(t, maxWait, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.calls["/"+timer] {
			return fmt.Errorf("the timer %s was not called", timer)
		}
		return nil
	})
}

// compareTimers holds that a restored Almanac has the timers that were pending at the backup.
func (b *box) compareTimers(t *testing.T, want int) {
	t.Helper()
	pending := 0
	for _, tm := range decoded[[]timers.Timer](b, "timers", "ls", "mails", "-o", "json") {
		if strings.HasPrefix(tm.ID, "later-") {
			pending++
		}
	}
	if pending != want {
		t.Errorf("%d timers are pending that were to be called a day later, want %d", pending, want)
	}
}
