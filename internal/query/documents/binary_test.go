package documents

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// answer is an answer of one row, with every column.
func answer() []byte {
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	names := strings.Fields("doc_id path c t version op seq month shard by user_id body")
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, n := range names {
		text(n)
	}
	for _, typ := range strings.Fields("String String Int64 Int64 Int64 LowCardinality(String) Int64 UInt32 UInt64 String String String") {
		text(typ)
	}
	text("d-1")
	text("se/uppsala")
	for _, n := range []uint64{1 << 62, 1<<62 + 1, 7} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	text("updated")
	b = binary.LittleEndian.AppendUint64(b, 1<<40)
	b = binary.LittleEndian.AppendUint32(b, 202611)
	b = binary.LittleEndian.AppendUint64(b, 1<<63)
	text("ada")
	text("u-7")
	text(`{"n":1}`)
	return b
}

// A row is read whole, however the answer comes; one that breaks off is an error at every byte.
func TestReadRows(t *testing.T) {
	t.Parallel()
	whole := answer()
	var got []row
	err := readRows(bufio.NewReader(iotest.OneByteReader(bytes.NewReader(whole))), func(r *row) { got = append(got, *r) })
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if r := got[0]; r.ID != "d-1" || r.Path != "se/uppsala" || r.Created != 1<<62 || r.Changed != 1<<62+1 || r.Version != 7 || r.Op != "updated" ||
		r.Seq != 1<<40 || r.Month != 202611 || r.Shard != 1<<63 || r.By != "ada" || r.User != "u-7" || string(r.Body) != `{"n":1}` {
		t.Errorf("%+v", r)
	}
	header := bytes.Index(whole, []byte("\x03d-1"))
	for n := range whole {
		err := readRows(bufio.NewReader(bytes.NewReader(whole[:n])), func(*row) {})
		if n == header && err != nil || n != header && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	broken := io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(io.ErrUnexpectedEOF))
	if err := readRows(bufio.NewReader(broken), func(*row) {}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an answer that breaks off between rows: %v", err)
	}
	away := errors.New("away")
	broken = io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(away))
	if err := readRows(bufio.NewReader(broken), func(*row) {}); !errors.Is(err, away) {
		t.Errorf("an answer that is not to be had between rows: %v", err)
	}
}

// What no statement asks for is refused.
func TestReadRowsRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]byte) []byte{
		"another type":   func(b []byte) []byte { return bytes.Replace(b, []byte("\x06UInt32"), []byte("\x06Date32"), 1) },
		"another column": func(b []byte) []byte { return bytes.Replace(b, []byte("\x04body"), []byte("\x04text"), 1) },
		"no column":      func([]byte) []byte { return []byte{0, 1} },
		"many columns":   func(b []byte) []byte { b[0] = maxColumns + 1; return b },
		"a long text": func(b []byte) []byte {
			return bytes.Replace(b, []byte("\x03d-1"), []byte("\xff\xff\xff\xff\x0fd-1"), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rows := 0
			if err := readRows(bufio.NewReader(bytes.NewReader(change(answer()))), func(*row) {
				if rows++; rows > 1 {
					panic(name + ": more rows than the answer has")
				}
			}); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Where a reader goes on in a lane of DOCS.
func TestPassedFrom(t *testing.T) {
	t.Parallel()
	p := emptyUpTo{stored: 10, end: 50}
	for name, c := range map[string]struct{ stored, want uint64 }{
		"nothing was stored since":    {10, 50},
		"more was stored":             {20, 50},
		"more was stored than passed": {55, 55},
		"less is stored":              {5, 5}, // ClickHouse is an older copy
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.from(c.stored); got != c.want {
				t.Errorf("%s: from %d, expected %d", name, got, c.want)
			}
		})
	}
}
