package rawjson

import (
	"strconv"

	"github.com/almanac-events/almanac/schemas"
)

// The keys by which a printed event says where it is stored.
const (
	placeMonth = 1 << iota
	placeShard
	placePos
	placeWhole = placeMonth | placeShard | placePos
)

func placeOf(key string) int {
	switch key {
	case schemas.ColMonth:
		return placeMonth
	case schemas.ColShard:
		return placeShard
	case schemas.ColPos:
		return placePos
	}
	return 0
}

// placed notes a key of the object itself that is printed of where an event is stored, if it has the form of that.
func (f *fields) placed(l *leaf) {
	bit, ok := placeOf(l.text), false
	switch text := l.value.Text(); bit {
	case placeMonth:
		var n uint64
		n, ok = counted(l, 32)
		f.month = schemas.Month(n)
	case placeShard:
		_, err := schemas.ParseShard(text)
		ok = err == nil && l.value[0] == '"'
	case placePos:
		_, ok = counted(l, 64)
	}
	switch {
	case !ok:
	case f.place&bit != 0: // it comes twice
		f.month = 0
	default:
		f.place |= bit
	}
}

// counted reads a whole number of so many bits.
func counted(l *leaf, bits int) (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(l.value), 10, bits)
	return n, err == nil
}

// printed reports whether the object is an event as Almanac prints it.
func (f *fields) printed() bool {
	return f.place == placeWhole && f.has[fieldID] && f.has[fieldTime] && schemas.MonthOf(f.ev.Time.UnixNano()) == f.month
}
