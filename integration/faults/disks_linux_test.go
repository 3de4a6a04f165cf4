package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// fill takes all the space there is, and gives it back when it is called.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	path := filepath.Join(disk, "filler")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); errors.Is(err, unix.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// Row 14: the disk of NATS is full. JetStream goes off and stays off until the server restarts, even when there is space
// again; the embedded server sees to that.
func TestDiskFullNATS(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	disk := embeddedtest.SmallDisk(t, "192m")
	h := Build(t, Plan{NATSDir: filepath.Join(disk, "nats"), Writers: []Writer{{Rate: 1500}, {Rate: 1500}}})
	h.fullDisk(t, disk, h.Writers[:1], Between(rnd, 4*time.Second, 8*time.Second))
}

// Row 15: the disk of ClickHouse is full. Inserts are refused, the sinks wait, and go on by themselves.
func TestDiskFullEngine(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	disk := embeddedtest.SmallDisk(t, "512m")
	h := Build(t, Plan{EngineDir: filepath.Join(disk, "engine"), Writers: []Writer{{Rate: 1500}, {Rate: 1500}}})
	h.fullDisk(t, disk, nil, Between(rnd, 4*time.Second, 8*time.Second))
}

func (h *Cluster) fullDisk(t *testing.T, disk string, halted []*Part, last time.Duration) {
	t.Helper()
	h.StartWriters()
	flows(t, h)
	free := fill(t, disk)
	began := time.Now()
	await(t, startWait, func(ctx context.Context) error { // nothing comes through any more
		n, err := h.SQL.Number(ctx, "SELECT count() FROM %s WHERE ts >= fromUnixTimestamp64Nano(%d)", Topic, began.Add(time.Second).UnixNano())
		if err == nil && n > 0 {
			began = time.Now()
		}
		if time.Since(began) > 4*time.Second {
			return nil
		}
		return errors.Join(err, fmt.Errorf("%d events came through a full disk", n))
	})
	for range halted {
		await(t, startWait, func(ctx context.Context) error { return h.standsStill(ctx, h.Writers[0]) })
	}
	if err := backoff.Sleep(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	free()
	took, err := h.Flows(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("flows again %s after there was space", took)
	h.Prove(2 * time.Minute)
}
