package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// typing are keys that are typed once a text is shown.
type typing struct{ after, keys string }

// atTerminal calls the command with a terminal that is its own, types there, and returns what is shown.
func (b *box) atTerminal(steps []typing, args ...string) (shown string, code int) {
	b.t.Helper()
	ours, theirs := openTerminal(b.t)
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	cmd := b.command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	_ = theirs.Close()
	text, buf := "", make([]byte, 4096)
	for {
		n, err := ours.Read(buf) // it ends with an error once the last writer is gone
		text += string(buf[:n])
		if len(steps) > 0 && strings.Contains(text, steps[0].after) {
			if _, err := io.WriteString(ours, steps[0].keys); err != nil {
				b.t.Fatal(err)
			}
			steps = steps[1:]
		}
		if err != nil {
			break
		}
	}
	code = exitStatus(b.t, cmd.Wait())
	_ = ours.Close()
	return text, code
}

// What is typed at the prompt of a removal, and how it ends: at once, and with the topic as it was unless its name was typed.
func TestRemovalPrompt(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up()
	const prompt = "Type the name of the topic"
	for name, c := range map[string]struct {
		keys, says string
		code       int
	}{
		"another name":             {"apps\r", `"apps" was typed, and the topic is "app"; nothing was removed`, exitUsage},
		"nothing":                  {"\r", "nothing was typed", exitUsage},
		"blanks":                   {"  \r", "nothing was typed", exitUsage},
		"ctrl-D":                   {"\x04", "nothing was typed", exitUsage},
		"ctrl-C":                   {"\x03", "nothing was removed", exitInterrupted},
		"ctrl-C after a name":      {"app\x03", "nothing was removed", exitInterrupted},
		"a line that is taken out": {"app\x15\r", "nothing was typed", exitUsage},
	} {
		shown, code := b.atTerminal([]typing{{prompt, c.keys}}, "topics", "rm", "app")
		if code != c.code || !strings.Contains(shown, c.says) {
			t.Errorf("%s: exit %d\n%s", name, code, shown)
		}
	}
	if out := b.ok("", "topics", "ls"); !strings.Contains(out, "app") {
		t.Errorf("the topic is not there any more:\n%s", out)
	}
	if out := b.ok("", "topics", "ls", "--removed"); strings.Contains(out, "app") {
		t.Errorf("a removal began:\n%s", out)
	}
	// Its name removes it. ctrl-C ends the verb on its way, and the removal stays entered.
	shown, code := b.atTerminal([]typing{{prompt, " app \r"}, {"looking whether anything comes again", "\x03"}}, "topics", "rm", "app")
	if code != exitInterrupted || !strings.Contains(shown, "run it again, and it goes on") {
		t.Errorf("interrupted on its way: exit %d\n%s", code, shown)
	}
	if out := b.ok("", "topics", "ls", "--removed"); !strings.Contains(out, "app") {
		t.Errorf("the removal is not entered:\n%s", out)
	}
	// A default topic that is being removed keeps nothing from starting.
	_ = up.cmd.Process.Kill()
	<-up.done
	if said := b.up().stderr(); !strings.Contains(said, "it is being removed, and is not declared") {
		t.Error(said)
	}
}

// A signal ends every verb that waits for its input, at once, with 130 and nothing done.
func TestSignalEndsAWaitForInput(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok("", "topics", "apply", "things", "--kind", "document")
	b.ok("", "topics", "apply", "timers", "--kind", "timer")
	b.ok("", "timers", "groups", "apply", "g")
	for _, c := range []struct{ begin, args string }{
		{`{"a":1}`, "docs put things x"},
		{`{"a":1}`, "docs update things x"},
		{`{"op":"create","id":"x","body":{}}`, "docs batch things"},
		{`{"id":"x"`, "docs import things --id id"},
		{`{"id":"x"`, "timers import g"},
		{`{"id":"x"`, "timers rm g --exported"},
		{"topics:\n  - name: more\n", "topics apply -f -"},
		{"CREATE TABLE app_x (x Int8) ENGINE = Memory", "sql"},
		{`{"topic":`, "verify --seals -"},
	} {
		for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
			b.waitsAndEnds(s, c.begin, strings.Fields(c.args)...)
		}
	}
	if out := b.ok("", "docs", "ls", "things"); strings.Contains(out, "x") {
		t.Errorf("a document was made:\n%s", out)
	}
	if out := b.ok("", "topics", "ls"); strings.Contains(out, "more") {
		t.Errorf("a topic was made:\n%s", out)
	}
}

// waitsAndEnds calls a verb with a pipe that has the beginning of its input and stays open, and signals it once it waits for more.
func (b *box) waitsAndEnds(s os.Signal, begin string, args ...string) {
	b.t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), out.Close() }()
	if _, err := io.WriteString(out, begin); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	cmd := b.command(ctx, args...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &said, &said
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	embeddedtest.Eventually(b.t, maxWait, func() error {
		select {
		case err := <-ended:
			ended <- err
			return nil
		default:
		}
		n, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d bytes are not read yet", n)
		}
		return err
	})
	select {
	case err := <-ended:
		b.t.Errorf("almanac %s ended before its input: %v\n%s", args, err, said.String())
		return
	default:
	}
	if err := cmd.Process.Signal(s); err != nil {
		b.t.Fatal(err)
	}
	select {
	case err := <-ended:
		if code := exitStatus(b.t, err); code != exitInterrupted {
			b.t.Errorf("almanac %s: %s, exit %d\n%s", args, s, code, said.String())
		}
	case <-time.After(maxWait):
		b.t.Errorf("almanac %s goes on waiting after %s", args, s)
	}
}
