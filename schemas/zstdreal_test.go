package schemas

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Real logs, a line an event: what is written here takes no more than a tenth above
// what klauspost's encoder makes of the same frame, whatever the file, and less of all
// of them together.
func TestZstdOfRealLogs(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("ALMANAC_SHARED_DATA")
	for up := "../shared/data"; dir == "" && len(up) < 40; up = "../" + up {
		if _, err := os.Stat(up); err == nil {
			dir = up
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if dir == "" || len(files) == 0 {
		t.Skip("no folder shared/data above this package; ALMANAC_SHARED_DATA can name it")
	}
	library, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(512<<10), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false))
	if err != nil {
		t.Fatal(err)
	}
	all, allByLibrary := 0, 0
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		topic := NewTopic("app", Field{Name: "took", Type: TypeFloat64})
		b, rows := NewFrameBuilder(&topic), int64(1_700_000_000_000_000_000)
		var ids IDSource
		for _, line := range strings.Split(readReal(t, file), "\n") {
			rows += 1000 * int64(1+len(line))
			e := Event{Level: "info", Service: "app", Type: "line", Message: line, Attrs: []Attr{Float64("took", float64(len(line))/8)}}
			if e.Bytes() > MaxEventBytes {
				continue
			}
			if b.Append(&e, rows, ids.Next(rows)); b.Full() {
				break
			}
		}
		var s scratch
		b.encodeRaw(&s)
		n := len(checkZstd(t, &s.packed, s.raw, s.parts...)) - blockAt
		byLibrary := len(library.EncodeAll(s.raw, nil))
		all, allByLibrary = all+n, allByLibrary+byLibrary
		t.Logf("%-40s %4d events of %6.1f bytes: %6.1f, by the library %6.1f, %.3f", filepath.Base(file), b.Rows(), float64(len(s.raw))/float64(b.Rows()), float64(n)/float64(b.Rows()), float64(byLibrary)/float64(b.Rows()), float64(n)/float64(byLibrary))
		if 10*n > 11*byLibrary {
			t.Errorf("%s: %d bytes, by the library %d", file, n, byLibrary)
		}
	}
	if all > allByLibrary {
		t.Errorf("%d bytes of all, by the library %d", all, allByLibrary)
	}
}

// readReal reads a file's first megabytes.
func readReal(t *testing.T, file string) string {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	if _, err := io.Copy(&text, io.LimitReader(r, 4<<20)); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
