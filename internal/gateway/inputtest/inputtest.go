package inputtest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Request is one request as a real program sent it.
type Request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"-"` // as sent, compressed where the headers say so
}

// Recorded reads a recorded request of shared/data/wire, such as pino-loki.1, or
// skips the test where the folder is absent.
func Recorded(t testing.TB, name string) Request {
	t.Helper()
	dir := wire(t)
	head, err := os.ReadFile(filepath.Join(dir, name+".head.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r Request
	if err := json.Unmarshal(head, &r); err != nil {
		t.Fatal(err)
	}
	r.Body = RecordedBytes(t, name+".body")
	return r
}

// RecordedBytes reads a file of shared/data/wire, or skips the test.
func RecordedBytes(t testing.TB, file string) []byte {
	t.Helper()
	return read(t, filepath.Join(wire(t), file))
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wire finds the recorded requests, or skips the test.
func wire(t testing.TB) string {
	t.Helper()
	return filepath.Join(data(t), "wire")
}

// data is DataDir, and skips the test where the folder is absent.
func data(t testing.TB) string {
	t.Helper()
	dir := DataDir(t)
	if dir == "" {
		t.Skip("no folder shared/data above this package; ALMANAC_SHARED_DATA can name it")
	}
	return dir
}

// File reads a file of shared/data, unpacked, or skips the test.
func File(t testing.TB, name string) []byte {
	t.Helper()
	b := read(t, filepath.Join(data(t), name))
	if strings.HasSuffix(name, ".gz") {
		return Gunzip(t, b)
	}
	return b
}

// DataDir finds shared/data: in ALMANAC_SHARED_DATA, or above the package. It is empty where
// the folder is absent.
func DataDir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("ALMANAC_SHARED_DATA"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for up := ""; dir != up; up, dir = dir, filepath.Dir(dir) {
		data := filepath.Join(dir, "shared", "data")
		if info, err := os.Stat(filepath.Join(data, "wire")); err == nil && info.IsDir() {
			return data
		}
	}
	return ""
}

// Gunzip returns what was compressed.
func Gunzip(t testing.TB, b []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var kinds = map[schemas.AttrKind]string{
	schemas.KindInt64: "int", schemas.KindFloat64: "float", schemas.KindBool: "bool", schemas.KindTime: "time",
}

// Text writes events one field a line, without what is empty. Attributes that are not
// strings have their type after the name.
func Text(events ...schemas.Event) string {
	var b strings.Builder
	for i := range events {
		ev := &events[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		if !ev.Time.IsZero() {
			fmt.Fprintf(&b, "ts %s\n", ev.Time.UTC().Format(time.RFC3339Nano))
		}
		if !ev.ID.IsZero() {
			fmt.Fprintf(&b, "id %s\n", ev.ID)
		}
		for _, f := range []struct{ name, value string }{
			{"level", ev.Level}, {"service", ev.Service}, {"type", ev.Type}, {"user_id", ev.UserID},
			{"trace_id", ev.TraceID}, {"span_id", ev.SpanID}, {"message", ev.Message},
		} {
			if f.value != "" {
				fmt.Fprintf(&b, "%s %s\n", f.name, f.value)
			}
		}
		for j := range ev.Attrs {
			a := &ev.Attrs[j]
			name := a.Key
			if kind := kinds[a.Kind()]; kind != "" {
				name += ":" + kind
			}
			fmt.Fprintf(&b, "  %s %s\n", name, a.Text())
		}
	}
	return b.String()
}

// Same fails the test where events are not those of want, in the form of Text with
// any indentation before its first line.
func Same(t testing.TB, events []schemas.Event, want string) {
	t.Helper()
	want = strings.TrimLeft(want, "\n")
	if got := Text(events...); got != want {
		t.Errorf("the events are\n%s\nexpected\n%s", got, want)
	}
}
