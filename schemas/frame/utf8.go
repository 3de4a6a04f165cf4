package frame

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
)

// markInvalidUTF8 gives every event that has a string which is not valid UTF-8
// the attribute AttrInvalidUTF8. It looks at whole columns, once a frame: nearly
// all are ASCII, which costs less to see than one call for each string.
func (b *Builder) markInvalidUTF8() {
	if b.marked {
		return
	}
	b.marked = true
	var bad map[int]string // by row; the first column that has one names it
	note := func(row int, column string) {
		if bad == nil {
			bad = map[int]string{}
		}
		if _, ok := bad[row]; !ok {
			bad[row] = column
		}
	}
	for _, c := range []struct {
		column *textColumn
		name   string
	}{
		{&b.message, schemas.ColMessage}, {&b.user, schemas.ColUserID}, {&b.level, schemas.ColLevel}, {&b.service, schemas.ColService},
		{&b.typ, schemas.ColType}, {&b.trace, schemas.ColTraceID}, {&b.span, schemas.ColSpanID},
	} {
		for _, row := range c.column.invalid() {
			note(row, c.name)
		}
	}
	for i := range b.fields {
		for _, row := range b.fields[i].text.invalid() {
			note(row, schemas.ColAttributes)
		}
	}
	for _, c := range []*textColumn{&b.attrKey, &b.attrVal} {
		for _, i := range c.invalid() {
			row, _ := slices.BinarySearch(b.attrEnd, uint64(i)+1)
			note(row, schemas.ColAttributes)
		}
	}
	if bad != nil {
		b.addAttrs(schemas.AttrInvalidUTF8, bad)
	}
}

// addAttrs gives the rows of values one more attribute: the last, or where the order of
// names has it. A row of sorted attributes that has one of that name keeps it.
func (b *Builder) addAttrs(key string, values map[int]string) {
	keys, vals := b.attrKey.clone(), b.attrVal.clone()
	b.attrKey.reset()
	b.attrVal.reset()
	from := uint64(0)
	for row, end := range b.attrEnd {
		v, add := values[row]
		for i := from; i < end; i++ {
			if name := keys.at(int(i)); add && b.sorted && string(name) >= key {
				if add = false; string(name) > key {
					b.attrKey.add(key)
					b.attrVal.add(v)
				}
			}
			b.attrKey.addBytes(keys.at(int(i)))
			b.attrVal.addBytes(vals.at(int(i)))
		}
		from = end
		if add {
			b.attrKey.add(key)
			b.attrVal.add(v)
		}
		b.attrEnd[row] = uint64(len(b.attrKey.ends))
	}
}

// invalid is the indices of the values that are not valid UTF-8.
func (c *textColumn) invalid() (rows []int) {
	if ascii(c.buf) {
		return nil
	}
	for i := range c.ends {
		if !utf8.Valid(c.at(i)) {
			rows = append(rows, i)
		}
	}
	return rows
}

// ascii says whether all bytes are below 128.
func ascii(b []byte) bool {
	var high uint64
	for ; len(b) >= 32; b = b[32:] {
		high |= binary.LittleEndian.Uint64(b) | binary.LittleEndian.Uint64(b[8:]) | binary.LittleEndian.Uint64(b[16:]) | binary.LittleEndian.Uint64(b[24:])
	}
	for _, c := range b {
		high |= uint64(c)
	}
	return high&0x8080808080808080 == 0
}
