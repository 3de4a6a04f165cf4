package frame

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
)

// namesSeen is a set of names that may hold more than were added: a bit for each length, first and last byte.
type namesSeen uint64

// has reports whether name may have been added before, and adds it.
func (s *namesSeen) has(name string) bool {
	bit := namesSeen(1) << ((len(name) + 7*int(name[0]) + 31*int(name[len(name)-1])) & 63)
	had := *s&bit != 0
	*s |= bit
	return had
}

// addName adds the name of an attribute to the event that is being added. One that the event
// has already becomes name#2, the next name#3, as a repeated key of JSON does, of a name that is too long for
// that its beginning: an event that is read can be written again. ClickHouse looks a
// name up in a map where it found it in the row before (26.7), so of two values under
// one name it would answer with either. Where names are sorted none comes twice (schemas.ErrLabels).
func (b *Builder) addName(name string) {
	if !b.sorted && name != "" && b.names.has(name) {
		if n := b.again(name); n > 1 {
			name = numbered(name) + "#" + strconv.Itoa(n)
			b.names.has(name) // from now on
		}
	}
	b.attrKey.add(name)
}

// numbered is what a number follows of a name.
func numbered(name string) string {
	if len(name) <= schemas.MaxAttrKeyBytes-schemas.AttrNumberBytes {
		return name
	}
	end := schemas.MaxAttrKeyBytes - schemas.AttrNumberBytes
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

// again returns the number that a name gets in the event that is being added: 1 for its first.
func (b *Builder) again(name string) int {
	first := 0
	if n := len(b.attrEnd); n > 0 {
		first = int(b.attrEnd[n-1]) //nolint:gosec // an index of attrKey.ends
	}
	has, base := false, numbered(name)
	var taken [schemas.MaxAttrs + 2]bool // more than an event has names, so that one is free
	for i := first; i < len(b.attrKey.ends); i++ {
		k := b.attrKey.at(i)
		has = has || string(k) == name
		if len(k) > len(base) && k[len(base)] == '#' && string(k[:len(base)]) == base {
			if n, err := strconv.Atoi(string(k[len(base)+1:])); err == nil && n >= 0 && n < len(taken) {
				taken[n] = true
			}
		}
	}
	if !has {
		return 1
	}
	return 2 + slices.Index(taken[2:], false)
}
