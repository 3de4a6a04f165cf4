package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// An `up` whose NATS hangs, as after a purge on a full disk (docs/upstream.md), ends with exit code 70 and says what to do. Started
// again with room on that disk it has what was acknowledged.
func TestUpEndsWhereItsNATSHangs(t *testing.T) {
	t.Parallel()
	disk := embeddedtest.SmallDisk(t, "720m")
	b := newBox(t, envPrefix+"DATA="+filepath.Join(disk, "data"), hungAfterEnv+"=15s")
	up := b.up()
	b.ok("{\"message\":\"before\"}\n", "send", "app")
	b.inTheEnd(1)
	a, err := embedded.ReadAddresses(filepath.Join(disk, "data"))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(a.NATSLogin(), nats.Timeout(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4000 {
		if _, err := js.PublishAsync([]string{"a", "b"}[i%2], []byte("some words")); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(maxWait):
		t.Fatal("the messages were not stored")
	}
	free := fillDisk(t, disk, 100)
	purge, end := context.WithTimeout(t.Context(), 10*time.Second)
	err = s.Purge(purge, jetstream.WithPurgeSubject("a"))
	end()
	if err == nil {
		t.Skip("this server answers a purge on a full disk")
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		select {
		case <-up.done:
			return nil
		default:
			return errors.New("the up goes on")
		}
	})
	if up.code != exitHung {
		t.Errorf("exit %d, want %d: %s", up.code, exitHung, up.stderr())
	}
	contains(t, up.stderr(), "embedded NATS: the server hangs", "end this process and start it again, with room on that disk", disk)
	free()
	b.env = append(b.env, hungAfterEnv+"=")
	b.up()
	b.inTheEnd(1)
	contains(t, b.ok("", "query", "app"), "before")
}
