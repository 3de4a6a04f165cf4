package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
)

// What is written in any pieces is shown without what would garble the terminal, and whole.
func TestScreen(t *testing.T) {
	t.Parallel()
	const text = "\u061c\u200e\u200f\ufff9\U000e0041a\x1b[5mb\u009bc\u202ed\u2066e\r\n\tü\x7f☃ \x9b \xc3"
	const shown = `\u061c\u200e\u200f\ufff9\udb40\udc41a\u001b[5mb\u009bc\u202ed\u2066e\u000d` + "\n\tü" + `\u007f☃ \u009b \u00c3`
	for size := 1; size < len(text)+1; size++ {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s := &screen{file: w}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if m, err := io.WriteString(s, rest[:n]); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		s.end()
		_ = w.Close()
		if got, err := io.ReadAll(r); err != nil || string(got) != shown {
			t.Errorf("in pieces of %d: %q, %v", size, got, err)
		}
		_ = r.Close()
	}
	if got := printable("a\x1b\u202e\u2069b\u009b\nc"); got != "a···b·"+"⏎c" {
		t.Errorf("%q", got)
	}
}

// No verb lets what others wrote act on the terminal, in any format. Into a pipe the machine formats
// give every byte.
func TestTerminalIsNotGarbled(t *testing.T) {
	t.Parallel()
	b := newBox(t, "NO_COLOR=1")
	b.up()
	const hostile = "x\x1b[5m\x1b]0;t\x07\u009b31m\u202egnp\u2066y\u200e\u200f\u061c"
	line := `{"message":"x\u001b[5m\u001b]0;t\u0007\u009b31m\u202egnp\u2066y\u200e\u200f\u061c","type":"\u202eexe","k":"\u001b[2J"}`
	b.ok(line+"\n", "send", "app", "--format", "ndjson")
	js, err := b.connect().JetStream(nats.MaxWait(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish("dead.\x1b[5m\u202e", []byte(hostile)); err != nil {
		t.Fatal(err)
	}
	b.inTheEnd(1)
	const raw = "SELECT message, '\xff\x9b31m' AS raw FROM app"
	for _, args := range [][]string{
		{"query", "app", "-o", "table"}, {"query", "app", "-o", "json"}, {"query", "app", "-o", "ndjson"}, {"query", "app"},
		{"tail", "app", "--from", "-1h", "--limit", "1", "-o", "ndjson"}, {"tail", "app", "--from", "-1h", "--limit", "1"},
		{"sql", raw, "-o", "csv"}, {"sql", raw, "-o", "table"}, {"sql", raw, "-o", "json"}, {"sql", raw, "-o", "ndjson"},
		{"sql", "--format", "TSVRaw", raw}, {"sql", "--format", "Vertical", raw}, {"sql", "SELECT 'a\u202eb' FROM nothing"},
		{"doctor"}, {"doctor", "-o", "json"}, {"doctor", "-o", "ndjson"}, {"dead", "ls"}, {"dead", "ls", "-o", "json"}, {"verify"}, {"values", "app", "message"},
		{"facets", "app", "--fields", "message,type"}, {"query", "app", "--where", "message = \u009b\x1b[5m"},
	} {
		shown, _ := b.onTerminal(args...)
		shown = strings.ReplaceAll(strings.ReplaceAll(shown, "\r\n", "\n"), clearLine, "")
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool { return r != '\n' && r != '\t' && garbles(r) }) {
			t.Errorf("almanac %q garbles a terminal: %q", args, shown)
		}
	}
	if out := b.ok("", "sql", raw, "-o", "csv"); !strings.Contains(out, hostile) || !strings.Contains(out, "\xff\x9b31m") {
		t.Errorf("into a pipe: %q", out)
	}
}
