package streams

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// What a user may not do fails with the user and the subject, and does not look like a server that is silent.
// It runs alone: what is denied fails all of the process that is not answered.
func TestDeniedNamesUserAndSubject(t *testing.T) {
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithNATSConfig(func(c *embedded.NATSConfig) { c.Passwords = embeddedtest.Passwords() }))
	for user, opts := range map[string][]nats.Option{
		"the user producer":       {nats.UserInfo(access.UserProducer, embeddedtest.Passwords()[access.UserProducer])},
		"a client without a user": nil,
	} {
		heard := make(chan error, 100)
		nc, err := Connect(srv.NATSURL, append(opts, nats.Timeout(20*time.Second), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { heard <- err }))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		for subject, ask := range map[string]func() error{
			"shards.app.2026-11.x": func() error {
				_, err := Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
					return js.Publish(ctx, "shards.app.2026-11.x", nil)
				})
				return err
			},
			"$JS.API.STREAM.INFO." + schemas.StreamShards: func() error {
				_, err := Open(ctx, js, schemas.StreamShards)
				return err
			},
			"$JS.API.DIRECT.GET." + schemas.StreamShards: func() error {
				return LatestAsOf(ctx, js, schemas.StreamShards, []string{"shards.app.2026-11.0"}, 1, func(*Message) error { return nil })
			},
			"$JS.API.STREAM.MSG.GET." + schemas.KVStream: func() error {
				_, err := DecideLast(ctx, js, schemas.KVStream, schemas.KVSubject("topics.app"))
				return err
			},
		} {
			if opts == nil && !strings.HasPrefix(subject, "shards.") {
				continue // one is enough
			}
			err := ask()
			if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), user) || !strings.Contains(err.Error(), subject) {
				t.Errorf("%s on %s: %v", user, subject, err)
			}
			if err := <-heard; !errors.Is(err, ErrDenied) { // the connection's own handler is told as well
				t.Errorf("heard: %v", err)
			}
		}
	}
}

// A denial ends the question on its subject at once and no other; where none says that it asks there, it ends those that do not say where
// they ask, once they had their time, and of its own connection alone. Where no answer could come all of a connection end.
func TestDenialEnds(t *testing.T) {
	here, elsewhere := &nats.Conn{}, &nats.Conn{}
	const info, get = "$JS.API.STREAM.INFO.EVENTS", "$JS.API.DIRECT.GET.SHARDS"
	waiting := map[string]asksOn{
		"info": {here, info}, "get": {here, get}, "here": {nc: here}, "unknown": {},
		"info elsewhere": {elsewhere, info}, "elsewhere": {nc: elsewhere},
	}
	for name, c := range map[string]struct {
		words       string
		without     string // a question that is not there
		atOnce, end []string
	}{
		"a subject that one asks on":  {`Permissions Violation for Publish to "` + info + `"`, "", []string{"info"}, []string{"info"}},
		"a subject that none asks on": {`Permissions Violation for Publish to "` + info + `"`, "info", nil, []string{"here", "unknown"}},
		"where answers come":          {`Permissions Violation for Subscription to "_INBOX.x.*"`, "", nil, []string{"get", "here", "info", "unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := waiters{all: map[*waiter]bool{}}
				asked := map[string]context.Context{}
				for name, on := range waiting {
					if name == c.without {
						continue
					}
					ctx, fail := context.WithCancelCause(t.Context())
					w.all[&waiter{fail, on}], asked[name] = true, ctx
				}
				ended := func() (names []string) {
					for name, ctx := range asked {
						if errors.Is(context.Cause(ctx), ErrDenied) {
							names = append(names, name)
						}
					}
					slices.Sort(names)
					return names
				}
				w.deny(asksOn{here, deniedSubject(c.words)}, ErrDenied)
				if got := ended(); !slices.Equal(got, c.atOnce) {
					t.Errorf("%v end at once, want %v", got, c.atOnce)
				}
				<-time.After(deniedGrace)
				synctest.Wait()
				if got := ended(); !slices.Equal(got, c.end) {
					t.Errorf("%v end, want %v", got, c.end)
				}
			})
		})
	}
}

// A user that may not hear the answers to what it asks is told so.
func TestDeniedAnswers(t *testing.T) {
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithNATSConfig(func(c *embedded.NATSConfig) { c.Passwords = embeddedtest.Passwords() }))
	nc, err := nats.Connect(srv.NATSURL, nats.UserInfo(access.UserReader, embeddedtest.Passwords()[access.UserReader]), nats.CustomInboxPrefix("_INBOX.of.another"), hearDenials, nats.Timeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Info(t.Context(), js, schemas.StreamEvents); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "_INBOX.of.another") {
		t.Errorf("%v", err)
	}
}
