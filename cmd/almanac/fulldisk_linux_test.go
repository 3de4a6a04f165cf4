package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/almanac-events/almanac/embedded"
	"github.com/almanac-events/almanac/embedded/embeddedtest"
)

// fillDisk takes all the space that a disk has.
func fillDisk(t *testing.T, disk string) (free func()) {
	t.Helper()
	name := filepath.Join(disk, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, unix.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// An `up` on a disk without a free byte starts and reads; what would be stored is refused with the
// reason; with room again it is taken, without a restart.
func TestUpOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := embeddedtest.SmallDisk(t, "720m")
	data := filepath.Join(disk, "data")
	b := newBox(t, envPrefix+"DATA="+data)
	first := b.up()
	b.ok("{\"message\":\"before\"}\n", "send", "app")
	b.ok("", "query", "app")
	first.stop(syscall.SIGINT)
	free := fillDisk(t, disk)
	b.up()
	addresses, err := embedded.ReadAddresses(data)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, b.ok("", "query", "app"), "before")
	contains(t, b.ok("", "sql", "SELECT 40 + 2"), "42")
	b.ok("", "topics", "ls")
	post := func(path, body string) (int, string) {
		t.Helper()
		resp, err := http.Post(addresses.HTTP+path, "application/json", strings.NewReader(body))
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	for path, body := range map[string]string{"/v1/topics/app/events": `{"message":"full"}`, "/v1/timers/g": `{}`, "/v1/documents/app": `{}`, "/v1/erasures": `{}`} {
		status, text := post(path, body)
		if status != http.StatusServiceUnavailable && status != http.StatusInsufficientStorage || !strings.Contains(text, "free, less than") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	free()
	embeddedtest.Eventually(t, 2*time.Minute, func() error {
		if status, text := post("/v1/topics/app/events", `{"message":"after"}`); status/100 != 2 {
			return errors.New(text)
		}
		return nil
	})
	b.ok("", "verify", "app")
}
