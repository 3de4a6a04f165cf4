package schemas

import (
	"fmt"
	"strconv"
	"strings"
)

// IDSumSQL is frame.Reader.IDSum in ClickHouse, as an aggregate over a table's rows.
const IDSumSQL = "sumWithOverflow(cityHash64(" + ColID + ", toUnixTimestamp64Nano(" + ColTs + ")))"

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
