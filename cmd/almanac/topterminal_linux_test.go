package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// topWatched is a top on a terminal of its own.
type topWatched struct {
	t            *testing.T
	cmd          *exec.Cmd
	ours, theirs *os.File
	before       unix.Termios

	mu    sync.Mutex
	shown string
}

func (b *box) watch(columns, rows uint16) *topWatched {
	b.t.Helper()
	w := &topWatched{t: b.t, cmd: b.command(b.t.Context(), "top")}
	w.ours, w.theirs = openTerminal(b.t)
	w.resize(columns, rows)
	w.before = w.state()
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = w.theirs, w.theirs, w.theirs
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for buf := make([]byte, 4096); ; {
			n, err := w.ours.Read(buf)
			w.mu.Lock()
			w.shown += string(buf[:n])
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	b.t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		_, _ = w.theirs.Close(), w.cmd.Wait()
		<-ended // with an error, once the last writer is gone
		_ = w.ours.Close()
	})
	return w
}

func (w *topWatched) resize(columns, rows uint16) {
	w.t.Helper()
	if err := unix.IoctlSetWinsize(int(w.theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *topWatched) state() unix.Termios {
	w.t.Helper()
	state, err := unix.IoctlGetTermios(int(w.theirs.Fd()), unix.TCGETS)
	if err != nil {
		w.t.Fatal(err)
	}
	return *state
}

func (w *topWatched) press(keys string) {
	w.t.Helper()
	if _, err := io.WriteString(w.ours, keys); err != nil {
		w.t.Fatal(err)
	}
}

// page waits until the page that is shown has all of some texts, and returns it.
func (w *topWatched) page(has ...string) (page string) {
	w.t.Helper()
	embeddedtest.Eventually(w.t, maxWait, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		page = strings.ReplaceAll(w.shown[strings.LastIndex(w.shown, "\x1b[2J")+1:], "\r\n", "\n")
		for _, text := range append(has, "q quit") { // which is the last of it
			if !strings.Contains(page, text) {
				return fmt.Errorf("%q is not shown in %q", text, page)
			}
		}
		return nil
	})
	return strings.TrimPrefix(page, "[2J")
}

// On a terminal keys sort, pick a topic and pause; another size of the terminal is seen; and however it ends the terminal is as it was.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok("", "topics", "apply", "other")
	b.ok(lines(10), "send", "app")
	for name, end := range map[string]func(w *topWatched) error{
		"ctrl-C": func(w *topWatched) error { w.press("\x03"); return nil },
		"q":      func(w *topWatched) error { w.press("q"); return nil },
		"TERM":   func(w *topWatched) error { return w.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		w := b.watch(40, 24)
		page := w.page("sorted by behind", "TOPIC", "app", "other", "EVENTS ", "REGISTRY ")
		for line := range strings.Lines(page) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 40 {
				t.Errorf("a line of %d columns on 40: %q", n, line)
			}
		}
		w.press("s")
		w.page("sorted by accepted")
		w.press("p")
		w.page("sorted by accepted, paused", "other")
		w.press("t")
		if page := w.page("app"); strings.Contains(page, "other") {
			embeddedtest.Eventually(t, maxWait, func() error { // drawn by now, or soon
				if strings.Contains(w.page("app"), "other") {
					return errors.New("the other topic is shown")
				}
				return nil
			})
		}
		w.resize(130, 30)
		w.page("NOT ROUTED", "ACTIVE")
		w.press("p")
		embeddedtest.Eventually(t, maxWait, func() error { // else the key may be left for whom has the terminal next, which shows it
			if strings.Contains(w.page("ACTIVE"), "paused") {
				return errors.New("it is paused still")
			}
			return nil
		})
		if err := end(w); err != nil {
			t.Fatal(err)
		}
		if code := exitStatus(t, w.cmd.Wait()); code != exitOK {
			t.Errorf("%s: exit %d", name, code)
		}
		if after := w.state(); after != w.before {
			t.Errorf("%s: the terminal is left as %+v, it was %+v", name, after, w.before)
		}
		embeddedtest.Eventually(t, maxWait, func() error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !strings.HasSuffix(w.shown, "\x1b[?25h\x1b[?1049l") || strings.Count(w.shown, "\x1b[?1049h") != 1 {
				return fmt.Errorf("the page before is not shown again: %q", w.shown[max(0, len(w.shown)-100):])
			}
			return nil
		})
	}
}
