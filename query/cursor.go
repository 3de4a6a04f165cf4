package query

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"

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

// compare orders positions as ClickHouse orders (ts, id): a UUID by its second
// half first, for reasons of its history.
func (p position) compare(q position) int {
	switch {
	case p.ts != q.ts:
		if p.ts < q.ts {
			return -1
		}
		return 1
	case p.id == q.id:
		return 0
	}
	if c := bytes.Compare(p.id[8:], q.id[8:]); c != 0 {
		return c
	}
	return bytes.Compare(p.id[:8], q.id[:8])
}

// cursorKey binds a cursor to the request it continues.
type cursorKey [8]byte

func newCursorKey(req Request) cursorKey {
	h := sha256.New()
	for _, s := range []string{req.Topic, req.Where, strconv.FormatBool(req.Ascending), req.From.UTC().String(), req.To.UTC().String()} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return cursorKey(h.Sum(nil))
}

// The cursor: version, edge, ts, id, the request's key, and a checksum that
// tells a changed cursor from a good one. It grants nothing, so no secret is
// needed.
const cursorBytes = 1 + 1 + 8 + 16 + 8 + 8

const cursorVersion = 1

func (k cursorKey) encode(p position) string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, cursorVersion, 0)
	if p.edge {
		b[1] = 1
	}
	b = binary.BigEndian.AppendUint64(b, uint64(p.ts))
	b = append(b, p.id[:]...)
	b = append(b, k[:]...)
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:8]...))
}

func (k cursorKey) decode(s string) (position, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != cursorBytes || b[0] != cursorVersion {
		return position{}, fmt.Errorf("%w: it is not one of ours; give the last page's cursor as it was", ErrCursor)
	}
	if sum := sha256.Sum256(b[:cursorBytes-8]); !bytes.Equal(sum[:8], b[cursorBytes-8:]) {
		return position{}, fmt.Errorf("%w: it was changed; give the last page's cursor as it was", ErrCursor)
	}
	if !bytes.Equal(k[:], b[26:34]) {
		return position{}, fmt.Errorf("%w: it continues another query; topic, where, from, to and order must be those of the page before", ErrCursor)
	}
	return position{ts: int64(binary.BigEndian.Uint64(b[2:])), id: schemas.ID(b[10:26]), edge: b[1] == 1}, nil
}
