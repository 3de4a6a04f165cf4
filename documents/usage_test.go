package documents

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Many processes create large documents at once, as fast as NATS takes them, until DOCS takes no more. What is kept
// for removals, updates and stubs is still there: every document is updated and removed.
func TestCreatesLeaveTheReserve(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	first, ctx := openOn(t, srv, nil)
	text := make([]byte, 100<<10)
	for i := range text {
		text[i] = byte(rand.Uint32())
	}
	body := fmt.Appendf(nil, `{"text":%q}`, hex.EncodeToString(text))
	const writers, each = 12, 4
	var mu sync.Mutex
	var ids []string
	var wg sync.WaitGroup
	for range writers {
		nc, err := nats.Connect(srv.NATSURL, nats.Timeout(20*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		c, err := Open(ctx, nc, "customers", Config{})
		if err != nil {
			t.Fatal(err)
		}
		for range each {
			wg.Go(func() {
				for {
					d, err := c.Create(ctx, Draft{Body: body})
					if errors.Is(err, ErrFull) {
						return
					}
					if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
						continue // nothing was written: NATS syncs what the others write, on a busy machine for seconds
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					ids = append(ids, d.ID)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	info, err := streams.Info(ctx, first.reg.JetStream(), schemas.StreamDocs)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d documents, %d bytes of %d", len(ids), info.State.Bytes, info.Config.MaxBytes)
	if most := uint64(info.Config.MaxBytes) / 8 * 7; info.State.Bytes > most || info.State.Bytes < most/2 {
		t.Errorf("creates filled %s to %d bytes of %d, expected at most %d", schemas.StreamDocs, info.State.Bytes, info.Config.MaxBytes, most)
	}
	for _, id := range ids {
		if _, err := first.Update(ctx, id, Always, []byte(`{}`)); err != nil {
			t.Fatalf("update: %v", err)
		}
		if err := first.Remove(ctx, id, Always); err != nil {
			t.Fatalf("removal: %v", err)
		}
	}
	if _, err := first.Create(ctx, Draft{ID: ids[0] + "x", Body: body}); !errors.Is(err, ErrFull) {
		t.Errorf("a create: %v", err)
	}
}

// Creates that were not stored leave the count that has them, and no later one.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	in, err := c.admit(ctx, 3)
	if err != nil || c.usage.keys != 3 {
		t.Fatalf("%d ids, %v", c.usage.keys, err)
	}
	c.giveBack(1, in)
	if c.usage.keys != 2 {
		t.Errorf("given back: %d ids, expected 2", c.usage.keys)
	}
	c.usage = usageSeen{at: in.Add(2 * time.Second), keys: 7} // counted again
	c.giveBack(2, in)
	if c.usage.keys != 7 {
		t.Errorf("given back to a later count: %d ids, expected 7", c.usage.keys)
	}
}
