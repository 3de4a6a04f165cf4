package spool

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

var anyRecord = rapid.Custom(func(t *rapid.T) Record {
	return Record{
		Topic: rapid.StringMatching(`[a-z][a-z0-9_]{0,62}`).Draw(t, "topic"),
		Month: schemas.Month(rapid.Uint32().Draw(t, "month")),
		Lane:  rapid.IntRange(0, schemas.MaxLanes-1).Draw(t, "lane"),
		Head: schemas.Frame{
			Rows:     rapid.IntRange(1, schemas.MaxFrameRows).Draw(t, "rows"),
			RawBytes: rapid.IntRange(0, schemas.MaxFrameRawBytes).Draw(t, "raw"),
			MinTs:    rapid.Int64().Draw(t, "min"), MaxTs: rapid.Int64().Draw(t, "max"),
			Schema:   rapid.IntRange(1, math.MaxInt32).Draw(t, "schema"),
			Producer: rapid.StringN(1, 16, schemas.MaxProducerBytes).Draw(t, "producer"),
			Seq:      rapid.Uint64Range(1, math.MaxUint64).Draw(t, "seq"),
		},
		Payload: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload"),
	}
})

// written is records one after the other, and where each begins.
func written(tb rapid.TB, salt uint64, rs []Record) (b []byte, at []int) {
	for i := range rs {
		at = append(at, len(b))
		var err error
		if b, err = appendFrame(b, salt, uint64(len(b)), &rs[i]); err != nil {
			tb.Fatal(err)
		}
	}
	return b, at
}

// readBack is every record a scanner finds, and the damage it names.
func readBack(tb rapid.TB, salt uint64, b []byte) (rs []Record, bad []*Damage) {
	s := scanner{r: bytes.NewReader(b), salt: salt, size: int64(len(b))}
	for last := int64(-1); ; {
		body, err := s.next()
		var d *Damage
		switch {
		case errors.Is(err, io.EOF):
			return rs, bad
		case errors.As(err, &d):
			bad = append(bad, d)
		case err != nil:
			tb.Fatal(err)
		case body[0] == whatFrame:
			r, ok := parseFrame(body)
			if !ok {
				tb.Fatal("a record with a true checksum says nothing")
			}
			r.Payload = append([]byte{}, r.Payload...)
			rs = append(rs, r)
		}
		if s.at <= last {
			tb.Fatal("the scanner does not move on")
		}
		last = s.at
	}
}

func TestRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := rapid.SliceOfN(anyRecord, 0, 5).Draw(t, "records")
		salt := rapid.Uint64().Draw(t, "salt")
		b, _ := written(t, salt, rs)
		got, bad := readBack(t, salt, b)
		if len(bad) > 0 {
			t.Fatalf("damage: %v", bad)
		}
		for i := range rs {
			if diff := cmp.Diff(rs[i], got[i]); diff != "" {
				t.Fatal(diff)
			}
		}
		if other, _ := readBack(t, salt+1, b); len(other) > 0 {
			t.Fatalf("%d records under another file's salt", len(other))
		}
	})
}

// Whatever becomes of a part of the file, the records outside it are read, and
// none that was never written.
func TestDamageHarmsNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := rapid.SliceOfN(anyRecord, 1, 6).Draw(t, "records")
		whole, at := written(t, 7, rs)
		from := rapid.IntRange(0, len(whole)-1).Draw(t, "from")
		to := from + rapid.IntRange(1, min(len(whole)-from, 64)).Draw(t, "bytes")
		b := bytes.Clone(whole)
		if cut := rapid.Bool().Draw(t, "cut"); cut {
			b, to = b[:from], len(whole)
		} else {
			copy(b[from:to], rapid.SliceOfN(rapid.Byte(), to-from, to-from).Draw(t, "bytes instead"))
		}
		got, bad := readBack(t, 7, b)
		var want []Record
		for i := range rs {
			end := len(whole)
			if i+1 < len(rs) {
				end = at[i+1]
			}
			if end <= from || at[i] >= to || end <= len(b) && bytes.Equal(b[at[i]:end], whole[at[i]:end]) {
				want = append(want, rs[i])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		clean := len(got) == len(rs) || len(b) == at[len(got)] // cut between two records
		if len(bad) == 0 && !clean {
			t.Fatalf("%d of %d records and the damage %v", len(want), len(rs), bad)
		}
	})
}

// A record that was logged as an event's bytes is not taken for one.
func TestRecordInsideARecord(t *testing.T) {
	inner, _ := written(t, 7, []Record{{Topic: "app", Head: schemas.Frame{Producer: "a", Seq: 1, Rows: 1}}})
	rs := []Record{{Topic: "app", Head: schemas.Frame{Producer: "b", Seq: 2, Rows: 1}, Payload: inner}}
	b, _ := written(t, 7, rs)
	b[0] ^= 1 // so that the scanner looks inside
	if got, bad := readBack(t, 7, b); len(got) != 0 || len(bad) != 1 {
		t.Fatalf("%v, %v", got, bad)
	}
}

func FuzzScan(f *testing.F) {
	rs := []Record{
		{Topic: "app", Month: 202611, Lane: 1, Head: schemas.Frame{Producer: "p", Seq: 1, Rows: 2}, Payload: []byte("one")},
		{Topic: "app", Month: 202611, Lane: 2, Head: schemas.Frame{Producer: "p", Seq: 9, Rows: 1}, Payload: []byte("two")},
	}
	b, _ := written(f, 7, rs)
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add(append(b[3:], b...))
	f.Add(appendEnd(nil, 7, 0, 1, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, _ := readBack(t, 7, b)
		// What is read is what was written: it encodes to bytes that are there.
		for i := range got {
			found := false
			for at := 0; at < len(b) && !found; at++ {
				again, err := appendFrame(nil, 7, uint64(at), &got[i])
				found = err == nil && at+len(again) <= len(b) && bytes.Equal(b[at:at+len(again)], again)
			}
			if !found {
				t.Fatalf("a record that was never written: %+v", got[i])
			}
		}
		if body, ok := bytes.CutPrefix(b, []byte{whatAcked}); ok {
			_, _, _ = parseAcked(append([]byte{whatAcked}, body...))
		}
	})
}

// A record with a true checksum and a name of any length is read, or refused.
func TestNamesOfAnyLength(t *testing.T) {
	for _, size := range []int{0, 1, 254, 255} {
		name := bytes.Repeat([]byte{'x'}, size)
		got, rest, ok := cutName(append(append([]byte{byte(size)}, name...), "rest"...))
		if !ok || got != string(name) || string(rest) != "rest" {
			t.Errorf("%d bytes: a name of %d bytes and %q, %v", size, len(got), rest, ok)
		}
		if _, _, ok := cutName(append([]byte{byte(size + 1)}, name...)); ok && size < 255 {
			t.Errorf("%d bytes: a name that is cut is taken", size)
		}
	}
}
