package frame

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/almanac-events/almanac/schemas"
)

// Builder gathers events of one topic, month and lane as columns and
// encodes them as a frame. It copies what it is given, so the caller may reuse
// every byte. Once its buffers have grown, neither Append nor Encode allocates.
// It is not safe for concurrent use.
//
// The columns are written here and not with ch-go's column types, because those
// keep the caller's strings (an event would escape to the heap) and build their
// dictionaries per value.
type Builder struct {
	topic *schemas.Topic

	ts      []int64
	ids     []byte
	level   textColumn
	service textColumn
	typ     textColumn
	user    textColumn
	trace   textColumn
	span    textColumn
	message textColumn
	attrEnd []uint64 // per event: attributes so far
	attrKey textColumn
	attrVal textColumn
	fields  []fieldColumn

	sorted bool    // the kind's attributes are, by name
	order  []int16 // of an event's attributes, then
	names  namesSeen

	minTs, maxTs int64
	marked       bool // markInvalidUTF8 has been through

	textBytes int // of all strings, and of numbers kept as text
	numbers   int // promoted fields of eight bytes, or fewer; a decimal counts twice
	headBytes int // of a frame without rows, at most

	// IDs is for the caller, who adds the ids that it was given. Reset resets it.
	IDs IDCounts

	out []byte // of Encode
}

// scratch is what encoding takes beside the events: four times as much memory as
// they do. Few frames are encoded at once and many are open, so builders share it.
type scratch struct {
	raw    []byte
	dict   dictionary
	packed []byte // of EncodeTo
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// NewBuilder makes an empty builder for t's newest schema version.
func NewBuilder(t *schemas.Topic) *Builder {
	b := &Builder{topic: t, sorted: t.Spec().Sorted}
	b.fields = make([]fieldColumn, len(t.Fields))
	for i, f := range t.Fields {
		b.fields[i].Field = f
		switch {
		case f.Type == schemas.TypeDecimal:
			b.numbers += schemas.DecimalBytes / 8
		case !f.Type.IsText():
			b.numbers++
		}
	}
	b.headBytes = headBytes(t)
	return b
}

// Rows is the number of events so far.
func (b *Builder) Rows() int { return len(b.ts) }

// RawBytes estimates the decompressed size so far, within a few per cent.
func (b *Builder) RawBytes() int {
	return b.textBytes + len(b.ts)*(rowOverheadBytes+8*b.numbers) + len(b.attrKey.ends)*attrOverheadBytes
}

// attrOverheadBytes is the dictionary key and the two lengths of one attribute,
// at the most that is usual.
const attrOverheadBytes = 8

// rowOverheadBytes is ts, id, the three dictionary indices, the four string
// lengths and the attribute offset of one row.
const rowOverheadBytes = 8 + 16 + 3 + 4 + 8

// Full says whether the frame should close: FrameRows or FrameRawBytes reached.
func (b *Builder) Full() bool {
	return b.Rows() >= schemas.FrameRows || b.RawBytes() >= schemas.FrameRawBytes
}

// Append adds an event that Validate accepted, at tsNs with the given id.
func (b *Builder) Append(e *schemas.Event, tsNs int64, id schemas.ID) {
	if len(b.ts) == 0 {
		b.minTs, b.maxTs = tsNs, tsNs
	}
	b.minTs, b.maxTs = min(b.minTs, tsNs), max(b.maxTs, tsNs)
	b.ts = append(b.ts, tsNs)
	// ClickHouse keeps a UUID as two little-endian halves, most significant first.
	b.ids = binary.LittleEndian.AppendUint64(b.ids, binary.BigEndian.Uint64(id[0:]))
	b.ids = binary.LittleEndian.AppendUint64(b.ids, binary.BigEndian.Uint64(id[8:]))
	b.level.add(e.Level)
	b.service.add(e.Service)
	b.typ.add(e.Type)
	b.user.add(e.UserID)
	b.trace.add(e.TraceID)
	b.span.add(e.SpanID)
	b.message.add(e.Message)
	b.textBytes += len(e.Level) + len(e.Service) + len(e.Type) + len(e.UserID) + len(e.TraceID) + len(e.SpanID) + len(e.Message)
	for i := range b.fields {
		b.fields[i].grow()
	}
	b.names = 0
	if b.sorted {
		b.order = sortedAttrs(b.order[:0], e.Attrs)
		for _, i := range b.order {
			b.attr(&e.Attrs[i])
		}
	} else {
		for i := range e.Attrs {
			b.attr(&e.Attrs[i])
		}
	}
	b.attrEnd = append(b.attrEnd, uint64(len(b.attrKey.ends)))
}

// attr puts an attribute into its promoted column, or into the map when it has
// none, or when its value does not fit the column's type: never is one lost.
func (b *Builder) attr(a *schemas.Attr) {
	for i := range b.fields {
		if f := &b.fields[i]; f.Takes(a.Key) {
			had := len(f.text.buf)
			if f.set(a) {
				b.textBytes += len(f.text.buf) - had
				return
			}
			break
		}
	}
	keys, had := len(b.attrKey.buf), len(b.attrVal.buf)
	b.addName(a.Key)
	b.attrVal.buf = a.AppendText(b.attrVal.buf)
	b.attrVal.end()
	b.textBytes += len(b.attrKey.buf) - keys + len(b.attrVal.buf) - had
}

// Encode writes the frame: headers but for Producer and Seq, and the payload,
// which is valid until the next call. The builder keeps its events until Reset,
// and takes no others before.
func (b *Builder) Encode() (schemas.Frame, []byte) {
	f, out := b.EncodeTo(b.out[:0])
	b.out = out
	return f, out
}

// EncodeTo is Encode with the payload appended to dst, which is the caller's.
func (b *Builder) EncodeTo(dst []byte) (schemas.Frame, []byte) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	b.encodeRaw(s)
	f := schemas.Frame{Rows: len(b.ts), RawBytes: len(s.raw), MinTs: b.minTs, MaxTs: b.maxTs, Schema: b.topic.Version}
	s.packed = appendCompressed(s.packed[:0], s.raw)
	return f, append(dst, s.packed...) // a copy, so that dst is no larger than the frame
}

// encodeRaw writes the block to s.raw.
func (b *Builder) encodeRaw(s *scratch) {
	b.markInvalidUTF8()
	raw, rows := s.raw[:0], len(b.ts)
	raw = binary.AppendUvarint(raw, uint64(len(schemas.BaseColumns)+len(b.fields)))
	raw = binary.AppendUvarint(raw, uint64(rows))

	raw = appendColumn(raw, schemas.BaseColumns[inTs])
	for _, v := range b.ts {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	raw = appendColumn(raw, schemas.BaseColumns[inID])
	raw = append(raw, b.ids...)
	raw = s.dict.appendColumn(appendColumn(raw, schemas.BaseColumns[inLevel]), &b.level)
	raw = s.dict.appendColumn(appendColumn(raw, schemas.BaseColumns[inService]), &b.service)
	raw = s.dict.appendColumn(appendColumn(raw, schemas.BaseColumns[inType]), &b.typ)
	raw = b.user.appendTo(appendColumn(raw, schemas.BaseColumns[inUserID]))
	raw = b.trace.appendTo(appendColumn(raw, schemas.BaseColumns[inTraceID]))
	raw = b.span.appendTo(appendColumn(raw, schemas.BaseColumns[inSpanID]))
	raw = b.message.appendTo(appendColumn(raw, schemas.BaseColumns[inMessage]))

	raw = appendColumn(raw, schemas.BaseColumns[inAttributes])
	raw = binary.LittleEndian.AppendUint64(raw, lowCardVersion)
	for _, v := range b.attrEnd {
		raw = binary.LittleEndian.AppendUint64(raw, v)
	}
	if len(b.attrKey.ends) > 0 {
		raw = s.dict.appendData(raw, &b.attrKey)
		raw = b.attrVal.appendTo(raw)
	}
	for i := range b.fields {
		raw = b.fields[i].appendTo(raw, &s.dict)
	}
	s.raw = raw
}

// Reset empties the builder and keeps its buffers.
func (b *Builder) Reset() {
	b.marked, b.textBytes = false, 0
	b.IDs.Reset()
	b.ts, b.ids, b.attrEnd = b.ts[:0], b.ids[:0], b.attrEnd[:0]
	for _, c := range []*textColumn{&b.level, &b.service, &b.typ, &b.user, &b.trace, &b.span, &b.message, &b.attrKey, &b.attrVal} {
		c.reset()
	}
	for i := range b.fields {
		b.fields[i].text.reset()
		b.fields[i].num, b.fields[i].dec = b.fields[i].num[:0], b.fields[i].dec[:0]
	}
}

func appendColumn(raw []byte, c schemas.Column) []byte {
	raw = appendText(raw, c.Name)
	return appendText(raw, c.Type)
}

func appendText(raw []byte, s string) []byte {
	raw = binary.AppendUvarint(raw, uint64(len(s)))
	return append(raw, s...)
}

// fieldColumn is a promoted field: text for strings, 64 bits for the others, or 128.
type fieldColumn struct {
	schemas.Field
	text textColumn
	num  []uint64
	dec  []schemas.Decimal
}

// grow adds a row with the type's zero.
func (f *fieldColumn) grow() {
	switch {
	case f.Type.IsText():
		f.text.end()
	case f.Type == schemas.TypeDecimal:
		f.dec = append(f.dec, schemas.Decimal{})
	default:
		f.num = append(f.num, 0)
	}
}

// set gives the last row its value; false when the attribute does not fit.
func (f *fieldColumn) set(a *schemas.Attr) bool {
	if f.Type == schemas.TypeJSON && !a.Fits(schemas.TypeJSON) {
		return false
	}
	if f.Type.IsText() {
		last := len(f.text.ends) - 1
		start := uint32(0)
		if last > 0 {
			start = f.text.ends[last-1]
		}
		if f.text.ends[last] != start {
			return false // a second attribute of that name: the map keeps it
		}
		f.text.buf = a.AppendText(f.text.buf)
		f.text.ends[last] = uint32(len(f.text.buf))
		return true
	}
	if f.Type == schemas.TypeDecimal {
		v := &f.dec[len(f.dec)-1]
		d, ok := a.AsDecimal()
		if !ok || !v.IsZero() {
			return false
		}
		*v = d
		return true
	}
	v := &f.num[len(f.num)-1]
	if *v != 0 {
		return false
	}
	switch f.Type {
	case schemas.TypeInt64:
		n, ok := a.AsInt64()
		if ok {
			*v = uint64(n)
		}
		return ok
	case schemas.TypeFloat64:
		n, ok := a.AsFloat64()
		if ok {
			*v = math.Float64bits(n)
		}
		return ok
	case schemas.TypeBool:
		n, ok := a.AsBool()
		if ok && n {
			*v = 1
		}
		return ok
	default:
		n, ok := a.AsTime()
		if ok {
			*v = uint64(n)
		}
		return ok
	}
}

func (f *fieldColumn) appendTo(raw []byte, d *dictionary) []byte {
	raw = appendColumn(raw, schemas.Column{Name: f.Name, Type: f.Type.Wire()})
	switch f.Type {
	case schemas.TypeString, schemas.TypeJSON:
		return f.text.appendTo(raw)
	case schemas.TypeDecimal:
		for _, d := range f.dec {
			raw = d.AppendWire(raw)
		}
	case schemas.TypeLowCardinality:
		return d.appendColumn(raw, &f.text)
	case schemas.TypeBool:
		for _, v := range f.num {
			raw = append(raw, byte(v))
		}
	default:
		for _, v := range f.num {
			raw = binary.LittleEndian.AppendUint64(raw, v)
		}
	}
	return raw
}
