package query

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// position is a place in the total order (ts, id). An edge has no id: it lies
// before every event at ts, in the page's direction, so those come next.
type position struct {
	ts   int64
	id   schemas.ID
	edge bool
}

func (p position) set() bool { return p.ts != 0 }

// compare orders positions as tables are sorted: by time, then by id as a number.
func (p position) compare(q position) int {
	switch {
	case p.ts != q.ts:
		if p.ts < q.ts {
			return -1
		}
		return 1
	}
	return p.id.Compare(q.id)
}

// cursor is where a page goes on or back, with what the first page fixed: the range, and
// the clock by which relative times of its filter were read.
type cursor struct {
	at       position
	asc      bool  // the order of the pages
	back     bool  // it goes back, to what comes before a page
	done     bool  // there is no more: a topic beside others that have more
	from, to int64 // unix ns
	now      int64
	// What it was made for, as digests.
	topic, where [4]byte
}

func digest4(s string) (d [4]byte) {
	sum := sha256.Sum256([]byte(s))
	copy(d[:], sum[:])
	return d
}

// The cursor on the wire: version, flags, ts, id, from, to, now, the digests of
// topic and filter, and a checksum that tells a changed cursor from a good one.
// It grants nothing, so no secret is needed.
const (
	cursorBytes   = 1 + 1 + 8 + 16 + 3*8 + 2*4 + sumBytes
	sumBytes      = 8
	cursorVersion = 2

	flagEdge = 1
	flagAsc  = 2
	flagBack = 4
	flagDone = 8
)

func (c cursor) encode() string {
	b := make([]byte, 0, cursorBytes)
	flags := byte(0)
	if c.at.edge {
		flags |= flagEdge
	}
	if c.asc {
		flags |= flagAsc
	}
	if c.back {
		flags |= flagBack
	}
	if c.done {
		flags |= flagDone
	}
	b = append(b, cursorVersion, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(c.at.ts))
	b = append(b, c.at.id[:]...)
	for _, n := range []int64{c.from, c.to, c.now} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(append(b, c.topic[:]...), c.where[:]...)
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:sumBytes]...))
}

func decodeCursor(s string) (c cursor, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != cursorBytes || b[0] != cursorVersion || base64.RawURLEncoding.EncodeToString(b) != s {
		return c, fmt.Errorf("%w: it is not one of ours; give the last page's cursor as it was", ErrCursor)
	}
	if sum := sha256.Sum256(b[:cursorBytes-sumBytes]); !bytes.Equal(sum[:sumBytes], b[cursorBytes-sumBytes:]) {
		return c, fmt.Errorf("%w: it was changed; give the last page's cursor as it was", ErrCursor)
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	c.at = position{ts: number(2), id: schemas.ID(b[10:26]), edge: b[1]&flagEdge != 0}
	c.asc, c.back, c.done = b[1]&flagAsc != 0, b[1]&flagBack != 0, b[1]&flagDone != 0
	c.from, c.to, c.now = number(26), number(34), number(42)
	copy(c.topic[:], b[50:])
	copy(c.where[:], b[54:])
	return c, nil
}

// continues says why the cursor does not continue a query of topic and filter in
// the given order, if so.
func (c cursor) continues(topic, where string, asc bool) error {
	differs := ""
	switch {
	case c.topic != digest4(topic):
		differs = "of another topic"
	case c.where != digest4(where):
		differs = "with another filter"
	case c.asc != asc:
		differs = "in the other order"
	default:
		return nil
	}
	return fmt.Errorf("%w: it continues a query %s; topic, filter and order must be those of the page before", ErrCursor, differs)
}

// Backwards reports whether a cursor is a page's Back.
func Backwards(text string) bool {
	text, _, _ = strings.Cut(text, cursorsSep)
	c, err := decodeCursor(text)
	return err == nil && c.back
}
