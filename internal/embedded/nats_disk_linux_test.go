package embedded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A disk that is really full, and then is not: nothing acknowledged is lost, and no restart is needed.
func TestNATSFullDisk(t *testing.T) {
	t.Parallel()
	disk := embeddedtest.SmallDisk(t, "24m")
	n, err := embedded.NewNATS(embedded.NATSConfig{
		Dir:           filepath.Join(disk, "nats"),
		MaxStoreBytes: 1 << 30, // the disk is to refuse, not the limit
		MinFreeBytes:  4 << 20,
		CheckInterval: 20 * time.Millisecond,
		Log:           func(level embedded.Level, part, text string) { t.Logf("%s %s: %s", level, part, text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	embeddedtest.Run(t, n)
	nc, err := nats.Connect(n.ClientURL(), nats.Timeout(20*time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	last := publish(t, nc, 1)

	filler := filepath.Join(disk, "filler")
	writeText(t, filler, string(make([]byte, 12<<20)))
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 256<<10)
	// No answer, or a refusal: which one depends on where the disk was full. A busy machine may not
	// answer in time before that, so what ends the filling is what the server says of itself.
	embeddedtest.Eventually(t, soon, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		ack, err := js.Publish(ctx, "s", body)
		cancel()
		if err == nil {
			last = ack.Sequence
		}
		if err := n.Healthy(); !errors.Is(err, embedded.ErrStoreOff) {
			return errors.New("the full disk went unnoticed")
		}
		return nil
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Eventually(t, soon, n.Healthy)
	embeddedtest.Eventually(t, soon, func() error {
		stream, err := js.Stream(t.Context(), "S")
		if err != nil {
			return err
		}
		if got := stream.CachedInfo().State.LastSeq; got < last {
			t.Fatalf("the stream ends at %d, but %d was acknowledged", got, last)
		}
		return nil
	})
	if got := publish(t, nc, 1); got <= last {
		t.Errorf("the next message has sequence %d, want above %d", got, last)
	}
}
