package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every call of almanac in the README runs, in order, and prints each
// line that the README shows.
func TestReadmeBlocks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t)
	b.up()
	if err := os.CopyFS(filepath.Join(b.dir, "docs", "samples"), os.DirFS("../../docs/samples")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("curl is not installed: its block is not run")
	}
	b.write("bin/almanac", "#!/bin/sh\nexec '"+self+"' \"$@\"\n")
	if err := os.Chmod(filepath.Join(b.dir, "bin", "almanac"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.env = append(b.env, "PATH="+filepath.Join(b.dir, "bin")+":"+path)

	blocks := consoleBlocks(string(text))
	if len(blocks) < 19 {
		t.Fatalf("the README has %d commands in its blocks, at least 19 are expected", len(blocks))
	}
	for _, c := range blocks {
		if _, err := exec.LookPath("curl"); err != nil && strings.HasPrefix(c.command, "curl") {
			continue
		}
		var out bytes.Buffer
		var err error
		for late := time.Now().Add(maxWait); ; { // a busy server may store later than a command waits for by itself
			out.Reset()
			ctx, cancel := context.WithTimeout(t.Context(), maxWait)
			cmd := exec.CommandContext(ctx, "bash", "-c", c.command)
			cmd.Dir, cmd.Env = b.dir, b.env
			cmd.Stdout, cmd.Stderr = &out, &out
			err = cmd.Run()
			cancel()
			reads := strings.HasPrefix(c.command, "almanac sql") || strings.HasPrefix(c.command, "almanac verify")
			if !reads || cmd.ProcessState.ExitCode() != exitPartial || time.Now().After(late) {
				break
			}
		}
		if err != nil {
			t.Errorf("$ %s\n%v\n%s", c.command, err, out.String())
			continue
		}
		got := steady(out.String())
		for _, want := range c.prints {
			if !strings.Contains(got, steady(want)) {
				t.Errorf("$ %s\ndoes not print %q but\n%s", c.command, want, out.String())
			}
		}
	}
}

// command is one command of a console block, and the lines that it prints.
type command struct {
	command string
	prints  []string
}

// consoleBlocks returns the commands of a Markdown text: those of its console blocks with what
// they print, and calls of almanac in other blocks.
func consoleBlocks(text string) (out []command) {
	inside, console := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inside, console = !inside, line == "```console"
		case !inside || line == "":
		case !console:
			if strings.HasPrefix(line, "almanac ") {
				out = append(out, command{command: line})
			}
		case strings.HasPrefix(line, "$ "):
			out = append(out, command{command: line[2:]})
		case len(out) > 0:
			out[len(out)-1].prints = append(out[len(out)-1].prints, line)
		}
	}
	return out
}

// What differs from run to run: runs of spaces, which depend on a table's widest cell, and
// times at which the README's commands ran. The events of its samples are older.
var (
	unsteady = regexp.MustCompile(` +`)
	moment   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

const samplesEnd = "2026-11-20"

func steady(s string) string {
	s = moment.ReplaceAllStringFunc(s, func(at string) string {
		if at < samplesEnd {
			return at
		}
		return "now"
	})
	return strings.TrimSpace(unsteady.ReplaceAllString(s, " "))
}

func TestConsoleBlocks(t *testing.T) {
	t.Parallel()
	got := consoleBlocks("a\n```console\n$ one 1\nout\n\n$ two\n```\nalmanac no\n```sh\n$ no\nalmanac three\n```\nalmanac no\n")
	if len(got) != 3 || got[2].command != "almanac three" || got[0].command != "one 1" || len(got[0].prints) != 1 || got[1].command != "two" {
		t.Errorf("%+v", got)
	}
}

// The README's Go compiles as it stands, after its go get line.
func TestReadmeGo(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```go\n")[1:]
	programs := []string{ // what stands round each block
		`import (
	"context"
	"log/slog"

	"github.com/almanac-events/almanac/producer"
)

func main() {
	ctx, ev := context.Background(), producer.Event{}
	%s
	_, _ = logger, err
}
`, `import (
	"context"

	"github.com/almanac-events/almanac"
	"github.com/almanac-events/almanac/query"
)

func main() {
	ctx := context.Background()
	%s
	_, _, _, _, _, _, _, _ = orders, customers, mails, page, replays, bills, trail, err
}
`}
	if len(blocks) != len(programs) {
		t.Fatalf("the README has %d blocks of Go, expected %d", len(blocks), len(programs))
	}
	for i, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		path := filepath.Join(t.TempDir(), "main.go")
		program := "package main\n\n" + fmt.Sprintf(programs[i], block)
		if err := os.WriteFile(path, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "go", "vet", path).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, program)
		}
	}
	contains(t, string(text), "go get github.com/almanac-events/almanac/producer\n")
}
