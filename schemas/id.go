package schemas

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/almanac-events/almanac/schemas/internal/splitmix"
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

// IDSource makes UUIDv7s of which each is greater than the one made before it, also where
// the clock stands still or goes back (RFC 9562, 6.2, methods 1 and 3): 48 bits of unix
// milliseconds, 12 bits of what is beyond them, in ticks of 244 ns, a counter of 8 bits that
// begins at zero with each tick, and 54 bits drawn at random for the source. The counter's
// overflow is carried to the tick, which then runs ahead of the clock. So ids of all sources
// of a machine are in the order in which they were made, but for those of one tick. Those of a
// frame differ in few bytes, and compress to half. The zero value is ready. It is safe for
// concurrent use.
type IDSource struct {
	last atomic.Uint64 // tick and counter of the newest id
	node atomic.Uint64 // the source's bits, never 0 once drawn
}

const (
	idTickBits    = 12 // of a millisecond
	idCounterBits = 8
	idNodeBits    = 62 - idCounterBits
)

// Next is the id of an event at the given wall clock. One before 1970 counts as 1970: the
// ids after it follow the clock again once it is set.
func (s *IDSource) Next(nowNs int64) ID {
	nowNs = max(nowNs, 0)
	ms, beyond := uint64(nowNs/1e6), uint64(nowNs%1e6)
	now := (ms<<idTickBits | beyond<<idTickBits/1e6) << idCounterBits
	for {
		last := s.last.Load()
		next := max(last+1, now)
		if s.last.CompareAndSwap(last, next) {
			return s.id(next)
		}
	}
}

func (s *IDSource) id(at uint64) ID {
	node := s.node.Load()
	for node == 0 {
		s.node.CompareAndSwap(0, rand.Uint64())
		node = s.node.Load()
	}
	tick := at >> idCounterBits
	return idOf(tick>>idTickBits, tick, at<<idNodeBits|node&(1<<idNodeBits-1))
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

// SequenceID is the id of what a stream stored at a time and a sequence: of a line of the
// message, or 0. It is the same through a re-run. Such ids are in the order of arrival: by the
// nanosecond, then by sequence and line. A stream that lost its end gives sequences again, and
// the time tells those apart.
func SequenceID(ns int64, seq, line uint64) ID {
	beyond := uint64(ns % 1e6) // 20 bits: 12 beside the milliseconds, 8 at the head of the rest
	return idFrom(ns, beyond>>8, beyond<<(seqBits+lineBits)|seq&(1<<seqBits-1)<<lineBits|line&(1<<lineBits-1))
}

const (
	// lineBits of a SequenceID are the line's: more than a message of MaxMessageBytes has.
	lineBits = 20
	// seqBits are the sequence's last ones: messages of one nanosecond lie close together.
	seqBits = 34
)

func idFrom(ns int64, r1, r2 uint64) ID { return idOf(uint64(ns/1e6), r1, r2) }

func idOf(ms, r1, r2 uint64) ID {
	var id ID
	binary.BigEndian.PutUint64(id[0:], ms<<16|0x7000|r1&0x0fff)
	binary.BigEndian.PutUint64(id[8:], 0x8000000000000000|r2&0x3fffffffffffffff)
	return id
}

// Compare orders ids as numbers, as their text does. IDOrderSQL does the same in SQL:
// ClickHouse itself orders UUIDs by their second half first, for reasons of its history.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// IDOrderSQL is the expression by which SQL orders rows as ID.Compare does. Tables are sorted
// by it, so that reading in that order sorts nothing.
const IDOrderSQL = "toUInt128(" + ColID + ")"

// OrderSQL is the value that IDOrderSQL has for the id.
func (id ID) OrderSQL() string { return "toUInt128(toUUID('" + id.String() + "'))" }

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
