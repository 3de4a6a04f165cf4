package streams

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// One of several servers that is frozen is left for another, whether the client is idle or writes more than the way
// there holds.
func TestAFrozenServerIsLeft(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	for name, write := range map[string]func(context.Context, *nats.Conn){
		"idle": func(context.Context, *nats.Conn) {},
		"writes": func(ctx context.Context, nc *nats.Conn) {
			for much := make([]byte, 512<<10); ctx.Err() == nil; {
				_ = nc.Publish("unheard", much) // what is cut off is not wanted
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, near := embeddedtest.NewCable(t, srv.NATSURL)
			_, other := embeddedtest.NewCable(t, srv.NATSURL)
			nc, err := Connect(near+","+other, append(Lasting(name), nats.DontRandomize(), nats.Timeout(20*time.Second))...)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if nc.ConnectedUrl() != near {
				t.Fatalf("connected to %s first, want %s", nc.ConnectedUrl(), near)
			}
			first.Freeze(true)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); write(ctx, nc) }()
			embeddedtest.Eventually(t, maxWait, func() error {
				if url := nc.ConnectedUrl(); url != other {
					return fmt.Errorf("connected to %q, want %s", url, other)
				}
				return nil
			})
			cancel()
			<-ended
			if err := nc.FlushTimeout(maxWait); err != nil {
				t.Error(err)
			}
		})
	}
}
