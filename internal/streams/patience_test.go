package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// Servers that elect are asked again beside the questions that wait, until an answer comes or an election would be over.
func TestAskedUntilElected(t *testing.T) {
	t.Parallel()
	refused := &jetstream.APIError{Code: 404, ErrorCode: jetstream.JSErrCodeStreamNotFound}
	noLeader := &jetstream.APIError{Code: 503, ErrorCode: codeNoLeader}
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	after := func(d time.Duration, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return err
			}
		}
	}
	at := func(err error) func(context.Context) error { return after(0, err) }
	for name, c := range map[string]struct {
		answers []func(context.Context) error // the last one is that of all that follow
		want    error
		asked   int // 0: any number
		took    time.Duration
		bound   time.Duration
	}{
		"answered":                          {answers: []func(context.Context) error{at(nil)}, asked: 1},
		"refused":                           {answers: []func(context.Context) error{at(refused)}, asked: 1, want: refused},
		"dropped, then a leader":            {answers: []func(context.Context) error{silent, silent, at(nil)}, asked: 3, took: 2 * askedAgain},
		"slow: the first question's answer": {answers: []func(context.Context) error{after(2*askedAgain+1, nil), silent}, asked: 3, took: 2*askedAgain + 1},
		"no leader, then one":               {answers: []func(context.Context) error{at(noLeader), at(noLeader), at(nil)}, asked: 3, took: 2 * noLeaderPause},
		"nothing listens, then it does":     {answers: []func(context.Context) error{at(nats.ErrNoResponders), at(nil)}, asked: 2, took: noLeaderPause},
		"never":                             {answers: []func(context.Context) error{silent}, asked: 15, took: elected, want: ErrCut},
		"no leader ever":                    {answers: []func(context.Context) error{at(noLeader)}, took: elected, want: ErrCut},
		"the caller's time is over":         {answers: []func(context.Context) error{silent}, asked: 2, took: time.Second, bound: time.Second, want: ErrCut},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.bound > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.bound)
					defer cancel()
				}
				var asked atomic.Int64
				began := time.Now()
				got, err := untilElected(ctx, func(ctx context.Context) (string, error) {
					n := int(asked.Add(1))
					return fmt.Sprint(n), c.answers[min(n, len(c.answers))-1](ctx)
				})
				if !errors.Is(err, c.want) || c.want == nil && got == "" {
					t.Errorf("%q, %v, want %v", got, err, c.want)
				}
				if took := time.Since(began); took != c.took || c.asked > 0 && int(asked.Load()) != c.asked {
					t.Errorf("asked %d times in %s, want %d in %s", asked.Load(), took, c.asked, c.took)
				}
			})
		})
	}
}

// A caller that ends is told so at once, and no question stays under way.
func TestAskedEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := untilElected(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		if !errors.Is(err, ErrCut) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// Of servers that elect one that was frozen gets requests for minutes. Another is asked then, and a read is complete.
func TestAnotherReplicaIsAsked(t *testing.T) {
	t.Parallel()
	srv, _ := readsStream(t)
	var swallow atomic.Int64
	through := embeddedtest.LinkProxy(t, srv.NC().ConnectedUrl(), func(r embeddedtest.Request) embeddedtest.Fate {
		return embeddedtest.Fate{Drop: strings.Contains(r.Subject, ".DIRECT.GET.") && swallow.Add(-1) >= 0}
	}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} })
	// A second address makes it a cluster to the client.
	_, js := embeddedtest.Dial(t, through+",nats://127.0.0.1:1", nats.DontRandomize())
	if !schemas.Elects(js.Conn()) || schemas.Elects(srv.NC()) {
		t.Fatal("one server counts as several, or several as one")
	}
	ctx := timeout(t)
	for name, read := range map[string]func(f func()) error{
		"latest": func(f func()) error {
			return Latest(ctx, js, testStream, "r.*", func(*Message) error { f(); return nil })
		},
		"gather": func(f func()) error {
			return Gather(ctx, js, testStream, "r.*", 1, nil, func(*Message) (bool, error) { f(); return true, nil })
		},
	} {
		swallow.Store(2)
		n := 0
		err := read(func() { n++ })
		if want := map[string]int{"latest": testSubjects, "gather": testMessages}[name]; err != nil || n != want || swallow.Load() >= 0 {
			t.Errorf("%s: %d messages, want %d, %v; %d more would have been swallowed", name, n, want, err, swallow.Load())
		}
	}
}
