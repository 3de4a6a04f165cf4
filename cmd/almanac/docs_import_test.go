package main

import (
	"strings"
	"testing"
)

// What docs export wrote is told from documents that have keys of the same names.
func TestExportedLinesAreRecognised(t *testing.T) {
	const head = `{"id":"c-1","path":"se","version":2,"created":"2026-11-22T22:54:56.28288154Z","changed":"2026-11-22T22:54:56.28288154Z"`
	for line, want := range map[string]bool{
		head + `,"by":"root","body":{"name":"n1"}}`:           true,
		head + `,"body":{}}`:                                  true,
		head + `,"body":null}`:                                true, // retention cleared it: it is refused, and not stored as a body
		head + `}`:                                            false,
		head + `,"body":{},"more":1}`:                         false,
		`{"id":"c-1","body":{}}`:                              false,
		`{"id":1,"version":"2","body":{}}`:                    false,
		strings.Replace(head, "2026", "x", 1) + `,"body":{}}`: false,
		`[` + head + `,"body":{}}]`:                           false,
		`{`:                                                   false,
	} {
		if got := isExported([]byte(line)); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

// exportedOnce exports and imports a topic of documents: twice as once, and each as it was.
func exportedOnce(t *testing.T, b *box) {
	t.Helper()
	b.ok("", "topics", "apply", "copies", "--kind", "document")
	b.ok(`{"n":1}`, "docs", "put", "customers", "old", "--path", "far/away", "--created", "2019-05-06T07:08:09.123456789Z")
	lines := b.ok("", "docs", "export", "customers")
	for _, want := range []string{"4 documents created, 0 existed", "0 documents created, 4 existed"} {
		if r := b.run(lines, "docs", "import", "copies"); r.code != exitOK || !strings.Contains(r.err, want) || !strings.Contains(r.err, "docs export wrote") {
			t.Errorf("import of an export: %s, want %s", r.err, want)
		}
	}
	without := func(lines string) (out []string) { // what changes with the copy
		for line := range strings.Lines(lines) {
			head, rest, _ := strings.Cut(line, `"changed":`)
			_, body, _ := strings.Cut(rest, `"body":`)
			out = append(out, head+body)
		}
		return out
	}
	if got, want := without(b.ok("", "docs", "export", "copies")), without(lines); strings.Join(got, "") != strings.Join(want, "") {
		t.Errorf("the copies are\n%s, want\n%s", got, want)
	}
	for _, want := range []string{"1 document created", "1 document created"} {
		if r := b.run(`{"name":"n"}`, "docs", "import", "copies"); r.code != exitOK || !strings.Contains(r.err, want) || !strings.Contains(r.err, "1 document got generated ids") {
			t.Errorf("ids that are generated: %s", r.err)
		}
	}
	if r := b.run(`{}`, "docs", "put", "copies", "old", "--path", "se"); r.code != exitConflict || !strings.Contains(r.err, `under path "far/away", and not under "se"`) {
		t.Errorf("a put through another path: exit %d, %s", r.code, r.err)
	}
	if r := b.run("", "docs", "rm", "copies", "old", "--path", "se"); r.code != exitConflict || !strings.Contains(r.err, "far/away") {
		t.Errorf("a removal through another path: exit %d, %s", r.code, r.err)
	}
	if out := b.ok("", "docs", "ls", "copies", "--path", "far", "--below", "--no-bodies", "-o", "ndjson"); !strings.Contains(out, `"id":"old"`) || strings.Contains(out, "body") {
		t.Errorf("a list below a path: %s", out)
	}
}
