package schemas

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/almanac-events/almanac/schemas/internal/splitmix"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// ID is an event's identity: a UUID in its canonical byte order.
type ID [16]byte

// NewID makes a UUIDv7 (RFC 9562) for the given wall clock: 48 bits of unix
// milliseconds, then 74 random bits. Written here and not taken from a library
// because it must neither allocate nor lock: math/rand/v2's global source is
// per-thread ChaCha8, seeded by the operating system.
func NewID(nowNs int64) ID {
	return idFrom(nowNs, rand.Uint64(), rand.Uint64())
}

// IDSource makes UUIDv7s in a row, of which no two are alike and each is greater
// than the one before while the clock does not go back and the counter is not
// through (RFC 9562, 6.2, method 1: a counter): 48 bits of unix milliseconds, a
// counter of 26 bits, and 48 bits drawn at random for the source. When the counter
// is through, after 33 to 67 million ids, these are drawn again and it begins lower:
// ids of that one millisecond are then apart by chance, 1 in 2^48, and out of order. A
// frame's ids differ in few bytes then, and compress to half. The zero value is
// ready. It is not safe for concurrent use.
type IDSource struct {
	node    uint64
	counter uint32
}

const (
	idNodeBits    = 48
	idCounterBits = 26 // 12 of them in rand_a, 14 at the head of rand_b
)

// Next is the id of an event at the given wall clock.
func (s *IDSource) Next(nowNs int64) ID {
	if s.counter == 0 {
		s.node = rand.Uint64() >> (64 - idNodeBits)
		// From a random place in the first half: two sources with one node, which are
		// not to be expected, still differ.
		s.counter = 1 + rand.Uint32N(1<<(idCounterBits-1))
	}
	n := uint64(s.counter)
	s.counter = (s.counter + 1) % (1 << idCounterBits)
	return idFrom(nowNs, n>>(idCounterBits-12), n<<idNodeBits|s.node)
}

// DerivedID makes the same UUIDv7 each time from the same input, for events
// that came without one and must keep it through a re-run. All 74 bits that are
// not the time are of both numbers: events of one millisecond are many, and
// usually have one of the two in common.
func DerivedID(tsNs int64, a, b uint64) ID {
	const golden = 0x9e3779b97f4a7c15
	h := splitmix.Mix(splitmix.Mix(a+golden) + b)
	return idFrom(tsNs, splitmix.Mix(h+golden), h)
}

// LineID is the id of an event that came as JSON without one, at a sequence and a line of a
// stream, and keeps it through a re-run. Where the last of equal events counts the ids are in
// the order of arrival; elsewhere they are of the event's time. A stream that lost its end
// gives sequences again, so a message is known by when it was stored too.
func (t *Topic) LineID(tsNs, storedNs int64, seq, line uint64) ID {
	if t.Spec().Wins != kinds.Last {
		return DerivedID(tsNs, seq^uint64(storedNs)<<20, line)
	}
	n := seq<<lineBits | line&(1<<lineBits-1)
	return idFrom(storedNs, n>>62, n)
}

// lineBits of a LineID are the line's: more than a message of MaxMessageBytes has.
const lineBits = 20

func idFrom(ns int64, r1, r2 uint64) ID {
	var id ID
	binary.BigEndian.PutUint64(id[0:], uint64(ns/1e6)<<16|0x7000|r1&0x0fff)
	binary.BigEndian.PutUint64(id[8:], 0x8000000000000000|r2&0x3fffffffffffffff)
	return id
}

// Compare orders ids as ClickHouse does: by the second half first, for reasons of its
// history.
func (id ID) Compare(other ID) int {
	return cmp.Or(bytes.Compare(id[8:], other[8:]), bytes.Compare(id[:8], other[:8]))
}

// IsZero says whether the id was never set.
func (id ID) IsZero() bool { return id == ID{} }

// String is the usual 36-character form.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// ParseID reads the 36-character form.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, fmt.Errorf("%w: %q", ErrID, s)
	}
	src := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36]
	if _, err := hex.Decode(id[:], []byte(src)); err != nil {
		return ID{}, fmt.Errorf("%w: %q", ErrID, s)
	}
	return id, nil
}
