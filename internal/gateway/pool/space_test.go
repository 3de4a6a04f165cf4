package pool_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
)

// While the producer's buffer is full, a request of which nothing was taken is refused
// after Hold. One of which some events were taken waits on, and all of it is stored. The
// pool does not watch here, so that it never knows that the stream takes nothing.
func TestSubmitHolds(t *testing.T) {
	t.Parallel()
	e := pooltest.Start(t, nil, schemas.NewTopic("app"))
	seen, open := make(chan struct{}), make(chan struct{}) // the first frame, and when frames pass
	first, end := sync.OnceFunc(func() { close(seen) }), sync.OnceFunc(func() { close(open) })
	through := embeddedtest.LinkProxy(t, e.Servers.NC().ConnectedUrl(), func(r embeddedtest.Request) embeddedtest.Fate {
		if strings.HasPrefix(r.Subject, "events.") {
			first()
			<-open
		}
		return embeddedtest.Fate{}
	}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} })
	nc, err := nats.Connect(through, nats.Timeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	p, err := pool.New(pool.Config{Anyone: true, NC: nc, Topic: e.Registry.Topic, Hold: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if err := p.Run(over); err != nil { // it closes the producers
			t.Error(err)
		}
	})
	const size = 32 << 10
	noise := rand.New(rand.NewPCG(1, 2)) // a frame takes of the buffer what it has encoded
	// begin returns a request of n events.
	begin := func(user string, n int) *pool.Request {
		t.Helper()
		r := p.Begin(pool.InputLines)
		t.Cleanup(r.End)
		to, err := r.To(t.Context(), "app")
		for range n {
			text := make([]byte, size)
			for i := range text {
				text[i] = ' ' + byte(noise.IntN('~'-' '))
			}
			if err == nil {
				err = to.Add(schemas.Event{UserID: user, Message: string(text)})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	large := begin("large", 2*pool.BufferBytes/size) // twice what the buffer holds
	stored := make(chan error, 1)
	go func() {
		_, err := large.Store(context.Background())
		stored <- err
	}()
	select {
	case <-seen: // so the large request is being taken
	case err := <-stored:
		t.Fatalf("no frame was sent, and the request ended: %v", err)
	}

	small, refused := 0, error(nil)
	for ; refused == nil; small++ {
		if small > 2*pool.BufferBytes/size {
			t.Fatal("the buffer takes more than it may")
		}
		refused = begin("small", 1).Submit(t.Context())
	}
	small-- // the last one was refused
	if !errors.Is(refused, pool.ErrStalled) || !strings.Contains(refused.Error(), "had no room for 50ms") || !strings.Contains(refused.Error(), "nothing of this request was taken") {
		t.Fatalf("a request that found no room: %v", refused)
	}

	end()
	if err := <-stored; err != nil {
		t.Fatalf("a request of which events were taken: %v", err)
	}
	embeddedtest.Eventually(t, time.Minute, func() error { // small requests did not wait for their answer
		got := map[string]int{}
		for _, ev := range e.Events("app") {
			got[ev.UserID]++
		}
		if got["large"] != large.Len() || got["small"] < small {
			return errors.New("events are missing")
		}
		if got["small"] > small {
			t.Fatalf("%d small events are stored, %d were taken", got["small"], small)
		}
		return nil
	})
}
