package streams

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A caller that waits for an answer when the connection is lost gets the error at once;
// one that asks afterwards is not disturbed.
func TestOutages(t *testing.T) {
	t.Parallel()
	server, err := embedded.NewNATS(embedded.NATSConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	stop := embeddedtest.Run(t, server)
	nc, err := nats.Connect(server.ClientURL(), nats.Timeout(20*time.Second), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx := timeout(t)
	o := NewOutages(nc)
	following := make(chan struct{})
	followed, end := context.WithCancel(ctx)
	go func() { defer close(following); o.Follow(followed) }()
	asking, done := o.Bound(ctx)
	defer done()
	stop()
	<-asking.Done()
	if err := context.Cause(asking); !errors.Is(err, ErrDisconnected) {
		t.Errorf("it ended by %v, want %v", err, ErrDisconnected)
	}
	later, done := o.Bound(ctx)
	if later.Err() != nil {
		t.Error("an outage that began before ends what comes after it")
	}
	done()
	if err := context.Cause(later); !errors.Is(err, context.Canceled) {
		t.Errorf("what was done ended by %v", err)
	}
	end()
	<-following
}
