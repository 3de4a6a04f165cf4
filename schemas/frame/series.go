package frame

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Series is the row that points of one series have in common, as a builder's columns have it: everything but time, id,
// value and start. It may be used by many goroutines at once.
type Series struct {
	texts    []byte  // of the columns of text, the attributes' names and values, one after the other
	columns  []int32 // where each column of text ends in them: seven base columns, then the fields of text
	keys     []int32 // where each attribute's name ends
	values   []int32 // and its value
	value    int     // which field
	start    int
	textSize int
}

// NewSeries makes the row of an event that the topic accepted, which schemas.Topic.OnePerSeries holds for.
func NewSeries(t *schemas.Topic, e *schemas.Event) *Series {
	b := NewBuilder(t)
	b.Append(e, 1, schemas.ID{})
	s := &Series{textSize: b.textBytes}
	for _, c := range b.base() {
		s.texts = append(s.texts, c.buf...)
		s.columns = append(s.columns, int32(len(s.texts)))
	}
	for i := range b.fields {
		switch f := &b.fields[i]; f.Name {
		case kinds.ColValue:
			s.value = i
		case kinds.ColStart:
			s.start = i
		default:
			if f.Type.IsText() {
				s.texts = append(s.texts, f.text.buf...)
				s.columns = append(s.columns, int32(len(s.texts)))
			}
		}
	}
	s.texts, s.keys = append(s.texts, b.attrKey.buf...), ends32(b.attrKey.ends)
	s.texts, s.values = append(s.texts, b.attrVal.buf...), ends32(b.attrVal.ends)
	s.texts = slices.Clip(s.texts)
	return s
}

func ends32(ends []uint32) []int32 {
	out := make([]int32, len(ends))
	for i, end := range ends {
		out[i] = int32(end)
	}
	return out
}

// Bytes returns what the series holds in memory, within a few per cent.
func (s *Series) Bytes() int {
	return 160 + len(s.texts) + 4*(len(s.columns)+len(s.keys)+len(s.values))
}

// base are the columns of text that every topic has, in the order of a frame.
func (b *Builder) base() [7]*textColumn {
	return [7]*textColumn{&b.level, &b.service, &b.typ, &b.user, &b.trace, &b.span, &b.message}
}

// AppendPoint adds a point of a series at tsNs, with its value, and its start unless that is 0. It is Append of the
// event that the series was made of, with these.
func (b *Builder) AppendPoint(s *Series, tsNs int64, id schemas.ID, value float64, startNs int64) {
	if len(b.ts) == 0 {
		b.minTs, b.maxTs = tsNs, tsNs
	}
	b.minTs, b.maxTs = min(b.minTs, tsNs), max(b.maxTs, tsNs)
	b.ts = append(b.ts, tsNs)
	b.ids = binary.LittleEndian.AppendUint64(b.ids, binary.BigEndian.Uint64(id[0:]))
	b.ids = binary.LittleEndian.AppendUint64(b.ids, binary.BigEndian.Uint64(id[8:]))
	b.textBytes += s.textSize
	from, n := int32(0), 0
	for _, c := range b.base() {
		c.addBytes(s.texts[from:s.columns[n]])
		from, n = s.columns[n], n+1
	}
	for i := range b.fields {
		f := &b.fields[i]
		if !f.Type.IsText() {
			f.grow()
			continue
		}
		f.text.addBytes(s.texts[from:s.columns[n]])
		from, n = s.columns[n], n+1
	}
	b.fields[s.value].num[len(b.ts)-1] = math.Float64bits(value)
	b.fields[s.start].num[len(b.ts)-1] = uint64(startNs)
	from = b.attrKey.addAll(s.texts, from, s.keys)
	b.attrVal.addAll(s.texts, from, s.values)
	b.attrEnd = append(b.attrEnd, uint64(len(b.attrKey.ends)))
}

// addAll adds the texts that begin at from and end where ends says, from there on. It returns where the last one ends.
func (c *textColumn) addAll(texts []byte, from int32, ends []int32) int32 {
	if len(ends) == 0 {
		return from
	}
	had, last := uint32(len(c.buf)), ends[len(ends)-1]
	c.buf = append(c.buf, texts[from:from+last]...)
	for _, end := range ends {
		c.ends = append(c.ends, had+uint32(end))
	}
	return from + last
}
