package streams

import (
	"context"
	"errors"
	"strings"
	"testing"
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
