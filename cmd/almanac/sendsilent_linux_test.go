package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A record of many lines, as a trace of a program that hangs, is sent once the program is silent, and the
// last one on TERM.
func TestSendMultilineOfASilentPipe(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	input, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = feed.Close() }()
	report := filepath.Join(b.dir, "accepted")
	cmd := b.command(t.Context(), "send", "app", "--multiline", "^E", "--report", report)
	var errs strings.Builder
	cmd.Stdin, cmd.Stderr = input, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = input.Close()
	write := func(text string) {
		t.Helper()
		if _, err := feed.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("E panic\n at main.go:1\n")
	embeddedtest.Eventually(t, maxWait, func() error {
		if got, _ := os.ReadFile(report); string(got) != "1\n" {
			return fmt.Errorf("the report says %q", got)
		}
		return nil
	})
	write("E last\n at main.go:2\n")
	embeddedtest.Eventually(t, maxWait, func() error {
		n, err := unix.IoctlGetInt(int(feed.Fd()), unix.TIOCINQ)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d bytes are not read yet", n)
		}
		return err
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitStatus(t, cmd.Wait()); code != exitInterrupted {
		t.Errorf("exit %d, want %d", code, exitInterrupted)
	}
	contains(t, errs.String(), "2 accepted")
	b.inTheEnd(2)
	if got := b.ok("", "sql", "SELECT message FROM app ORDER BY message"); got != `{"message":"E last\n at main.go:2"}`+"\n"+`{"message":"E panic\n at main.go:1"}`+"\n" {
		t.Errorf("stored is %s", got)
	}
}
