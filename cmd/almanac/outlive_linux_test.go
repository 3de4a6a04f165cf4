package main

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
)

// The terminal of `up` is closed, and who read the log of a router goes away: both go on, and the
// addresses stay.
func TestOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.needEngine()
	ours, theirs := openTerminal(t)
	up := b.command(t.Context(), "up", "--ports", "auto")
	up.Stdin, up.Stdout, up.Stderr = theirs, theirs, theirs
	up.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	up.Cancel = func() error { return up.Process.Kill() }
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	_ = theirs.Close()
	readUntil(t, ours, "Almanac is ready")
	if err := up.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	readUntil(t, ours, "SIGHUP: settings were read again")
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}

	stderr, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	router := b.command(t.Context(), "router", "--nats", a.NATS, "--log-format", "json")
	router.Stderr = write
	if err := router.Start(); err != nil {
		t.Fatal(err)
	}
	routerEnded := make(chan error, 1)
	go func() { routerEnded <- router.Wait() }()
	_ = write.Close()
	readUntil(t, stderr, `"ready"`)
	_ = stderr.Close()
	_ = ours.Close() // the kernel sends SIGHUP, and every write fails from now on
	for range 3 {    // each is a line in the log, which nothing takes
		for _, p := range []*os.Process{up.Process, router.Process} {
			if err := p.Signal(syscall.SIGHUP); err != nil {
				t.Error(err)
			}
		}
		awaitHTTP(t, a.HTTP)
	}
	if _, err := embedded.ReadAddresses(b.data()); err != nil {
		t.Errorf("addresses: %v", err)
	}
	b.ok("one\n", "send", "app", "--format", "text")
	if err := router.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := <-routerEnded; err != nil {
		t.Errorf("router after SIGTERM: %v", err)
	}
	if err := up.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("up after SIGTERM: %v", err)
	}
}

// readUntil reads what a process prints until it has said text.
func readUntil(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var said strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(said.String(), text); {
		n, err := r.Read(buf)
		if said.Write(buf[:n]); err != nil && !strings.Contains(said.String(), text) {
			t.Fatalf("it did not say %q: %v\n%s", text, err, said.String())
		}
	}
}
