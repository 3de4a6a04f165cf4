package schemas

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-faster/city"
)

// IDSumSQL is FrameReader.IDSum in ClickHouse, as an aggregate over a table's rows.
const IDSumSQL = "sumWithOverflow(cityHash64(" + ColID + ", toUnixTimestamp64Nano(" + ColTs + ")))"

// IDSum is the sum modulo 2^64 of one number for each event, made of its id and its
// time. It does not depend on the order of the events, and sums of frames add up. So
// rows of a table are the events of some frames when their counts and sums are equal:
// one id or time that was replaced is missed by chance, 1 in 2^64.
//
// No other column is in it. Erasures take whole rows, whose sums the registry keeps;
// anonymising clears any column but these two, for good.
func (r *FrameReader) IDSum() uint64 {
	return idSum(r.columns[inID].fixed, r.rows, r.Ts)
}

// IDSum is FrameReader.IDSum of the events that the builder has.
func (b *FrameBuilder) IDSum() uint64 {
	return idSum(b.ids, len(b.ts), func(i int) int64 { return b.ts[i] })
}

// idSum adds up the events of which ids has the ids as a frame does: two
// little-endian halves each, which is how ClickHouse keeps and hashes a UUID.
func idSum(ids []byte, n int, ts func(i int) int64) (sum uint64) {
	for i := range n {
		sum += hash128to64(city.CH64(ids[16*i:16*i+16]), intHash64(uint64(ts(i))))
	}
	return sum
}

// intHash64 is what ClickHouse's cityHash64 makes of a number: the finaliser of
// MurmurHash3 over it and a constant of ClickHouse's own.
func intHash64(x uint64) uint64 {
	x ^= 0x4cf2d2baae6da887
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// hash128to64 is how cityHash64 joins the hashes of two columns: CityHash's Hash128to64.
func hash128to64(lo, hi uint64) uint64 {
	const mul = 0x9ddfea08eb382d69
	a := (lo ^ hi) * mul
	a ^= a >> 47
	b := (hi ^ a) * mul
	b ^= b >> 47
	return b * mul
}

// IDSums says which events a shard has up to a frame: the sum of their IDSums from
// position From on. From is 1 but in a shard that was begun by an earlier version,
// whose frames carry no sum. The zero value: it is not known.
type IDSums struct {
	From uint64
	Sum  uint64
}

// Next adds the frame at pos.
func (s IDSums) Next(pos, sum uint64) IDSums {
	if s.From == 0 {
		return IDSums{pos, sum}
	}
	return IDSums{s.From, s.Sum + sum}
}

// Known reports whether any frame was added.
func (s IDSums) Known() bool { return s.From > 0 }

// Whole reports whether every position of the shard is in the sum.
func (s IDSums) Whole() bool { return s.From == 1 }

// Since is the sum of the frames above an earlier one of the shard, and whether it is
// known: both must have been added to one sum.
func (s IDSums) Since(before IDSums) (sum uint64, ok bool) {
	return s.Sum - before.Sum, s.Known() && s.From == before.From
}

// String is the header's form: the sum in 16 hex digits and, where it does not count
// from the shard's beginning, a slash and the position from which it does.
func (s IDSums) String() string {
	if s.Whole() {
		return fmt.Sprintf("%016x", s.Sum)
	}
	return fmt.Sprintf("%016x/%d", s.Sum, s.From)
}

// parseIDSums reads that form.
func parseIDSums(text string) (s IDSums, ok bool) {
	hex, from, later := strings.Cut(text, "/")
	if len(hex) != 16 {
		return s, false
	}
	sum, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		return s, false
	}
	s = IDSums{1, sum}
	if later {
		s.From, err = strconv.ParseUint(from, 10, 63)
	}
	return s, err == nil && s.From > 0
}

// MarshalText writes the header's form.
func (s IDSums) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads it.
func (s *IDSums) UnmarshalText(text []byte) error {
	sums, ok := parseIDSums(string(text))
	if *s = sums; !ok {
		return fmt.Errorf("%w: %q is not a sum of ids", ErrFrameHeaders, text)
	}
	return nil
}
