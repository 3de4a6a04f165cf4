package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A purge that was the first to meet a full disk deadlocked the
// server with itself (docs/upstream.md), each health check hung, and nothing replaced
// it. Now checks end, leave one goroutine at most, and Run returns ErrHung.
func TestNATSPurgeOnFullDisk(t *testing.T) {
	t.Parallel()
	disk := embeddedtest.SmallDisk(t, "24m")
	n, err := embedded.NewNATS(embedded.NATSConfig{
		Dir: filepath.Join(disk, "nats"), MaxStoreBytes: 1 << 30, MinFreeBytes: 4 << 20,
		CheckInterval: 20 * time.Millisecond, HungAfter: 3 * time.Second,
		Log: func(level embedded.Level, part, text string) {
			if t.Context().Err() == nil {
				t.Logf("%s %s: %s", level, part, text)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, js := embeddedtest.Dial(t, n.ClientURL(), nats.MaxReconnects(-1))
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	// Each purged message leaves a tombstone, as others around it stay: more than a page.
	for i := range 4000 {
		if _, err := js.PublishAsync([]string{"a", "b"}[i%2], []byte("some words")); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(time.Minute):
		t.Fatal("the messages were not stored")
	}
	filler, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = filler.Close() }()
	for page := make([]byte, 4096); ; {
		if _, err := filler.Write(page); err != nil {
			break
		}
	}
	purge, end := context.WithTimeout(t.Context(), 2*time.Second)
	err = s.Purge(purge, jetstream.WithPurgeSubject("a"))
	end()
	if err == nil {
		t.Fatal("the purge found room on the full disk")
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Skipf("this server answers a purge on a full disk (%v): the deadlock is mended upstream, docs/upstream.md is out of date", err)
	}
	before := runtime.NumGoroutine()
	for range 200 {
		go func() { _ = n.Healthy() }()
	}
	embeddedtest.Eventually(t, soon, func() error {
		if more := runtime.NumGoroutine() - before; more > 20 {
			return fmt.Errorf("%d goroutines are left of 200 health checks", more)
		}
		return nil
	})
	select {
	case err := <-ended:
		if !errors.Is(err, embedded.ErrHung) {
			t.Errorf("Run returned %v, want ErrHung", err)
		}
		t.Log(err)
	case <-time.After(time.Minute):
		t.Error("a server that hangs was not given up")
	}
}
