package main

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal opens both ends of a terminal.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// onTerminal calls the command with a terminal as stdout and stderr, and returns what is
// shown there.
func (b *box) onTerminal(args ...string) (shown string, code int) {
	b.t.Helper()
	ours, theirs := openTerminal(b.t)
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(ours) // it ends with an error once the last writer is gone
		read <- string(text)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	cmd := b.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = theirs, theirs
	code = exitStatus(b.t, cmd.Run())
	_ = theirs.Close()
	shown = <-read
	_ = ours.Close()
	return shown, code
}

// A query that reads many shards shows how far it is, and what
// would garble a terminal is refused there.
func TestOnATerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok(manyMonths(12, 16), "send", "app", "--format", "ndjson")
	b.inTheEnd(192)
	shown, code := b.onTerminal("query", "app", "--where", "message = 'month 0' AND user_id = 'u-3'", "-o", "ndjson")
	if code != exitOK || !strings.Contains(shown, "shards read") || !strings.Contains(shown, `"message":"month 0"`) {
		t.Errorf("exit %d:\n%q", code, shown)
	}
	for _, format := range [][]string{{"-o", "parquet"}, {"--format", "Native"}} {
		shown, code := b.onTerminal(append([]string{"sql", "SELECT * FROM app"}, format...)...)
		if code != exitUsage || !strings.Contains(shown, "not for a terminal") || !strings.Contains(shown, "> events.") {
			t.Errorf("%v: exit %d:\n%.300q", format, code, shown)
		}
	}
}
