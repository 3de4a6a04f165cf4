package schemas

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// FrameReader opens frames: it checks the checksum, decompresses, and walks
// every column with bounds, so that what it accepts ClickHouse accepts too. Its
// buffers are reused from frame to frame; it is not safe for concurrent use.
type FrameReader struct {
	raw   []byte
	topic *Topic

	rows    int
	columns []openColumn
	attrEnd []uint64
}

// openColumn is one column inside the decompressed frame.
type openColumn struct {
	frameColumn
	fixed []byte   // fixed-width values
	words wordList // String values, or the dictionary
	keys  []uint32 // dictionary key per value; nil for plain String
}

// Open reads a frame of topic t made under the given schema version. After an
// error the reader holds no frame but may be used again.
func (r *FrameReader) Open(payload []byte, t *Topic, schema int) error {
	r.rows, r.topic = 0, t
	if schema < 1 || schema > t.Version {
		return fmt.Errorf("%w: version %d, topic %q has versions 1 to %d", ErrFrameSchema, schema, t.Name, t.Version)
	}
	var err error
	if r.raw, err = decompress(payload, r.raw); err != nil {
		return err
	}
	c := cursor{raw: r.raw}
	rows, err := r.walk(&c, t.frameColumns(schema))
	if err != nil {
		return err
	}
	if len(c.raw) != c.at {
		return fmt.Errorf("%w: %d bytes after the last column", ErrFrameCorrupt, len(c.raw)-c.at)
	}
	r.rows = rows
	return nil
}

// walk reads the block: every column must be the expected one.
func (r *FrameReader) walk(c *cursor, want []frameColumn) (rows int, err error) {
	ncols, nrows := c.uvarint(), c.uvarint()
	if c.bad {
		return 0, errCut
	}
	if nrows == 0 || nrows > MaxFrameRows {
		return 0, fmt.Errorf("%w: %d rows, a frame has 1 to %d", ErrFrameTooLarge, nrows, MaxFrameRows)
	}
	if ncols != uint64(len(want)) {
		return 0, fmt.Errorf("%w: %d columns, its schema version has %d", ErrFrameColumns, ncols, len(want))
	}
	rows = int(nrows)
	if cap(r.columns) < len(want) {
		r.columns = make([]openColumn, len(want))
	}
	r.columns = r.columns[:len(want)]
	for i, w := range want {
		name, typ := c.text(), c.text()
		if c.bad {
			return 0, errCut
		}
		if string(name) != w.name || string(typ) != string(w.typ) {
			return 0, fmt.Errorf("%w: column %d is %.80q %.80q, it must be %q %q", ErrFrameColumns, i+1, name, typ, w.name, w.typ)
		}
		col := &r.columns[i]
		col.frameColumn, col.fixed, col.keys = w, nil, col.keys[:0]
		if err := r.column(c, col, rows); err != nil {
			return 0, fmt.Errorf("column %q: %w", w.name, err)
		}
	}
	return rows, nil
}

func (r *FrameReader) column(c *cursor, col *openColumn, rows int) error {
	switch col.typ {
	case chDateTime64, chInt64, chFloat64, chUInt64:
		col.fixed = c.bytes(8 * rows)
	case chUUID, chDecimal:
		col.fixed = c.bytes(16 * rows)
	case chBool:
		col.fixed = c.bytes(rows)
		for _, b := range col.fixed {
			if b > 1 {
				return fmt.Errorf("%w: a Bool is %d", ErrFrameCorrupt, b)
			}
		}
	case chString:
		c.words(&col.words, rows)
	case chLowCard:
		if c.uint64() != lowCardVersion && !c.bad {
			return fmt.Errorf("%w: unknown LowCardinality version", ErrFrameCorrupt)
		}
		return lowCard(c, col, rows)
	case chMap:
		return r.attributes(c, col, rows)
	}
	if c.bad {
		return errCut
	}
	return nil
}

var errCut = fmt.Errorf("%w: it ends in the middle", ErrFrameCorrupt)

// lowCard reads a dictionary and one key a row.
func lowCard(c *cursor, col *openColumn, rows int) error {
	meta, n := c.uint64(), c.uint64()
	width := meta & lowCardKeyMask
	if c.bad {
		return errCut
	}
	// ClickHouse refuses flags it does not know, and then the whole insert.
	if meta&^lowCardUpdateBit != lowCardExtraBit|width || width > 2 || n > uint64(rows)+1 {
		return fmt.Errorf("%w: LowCardinality flags 0x%x with %d words for %d rows", ErrFrameCorrupt, meta, n, rows)
	}
	c.words(&col.words, int(n))
	if c.uint64() != uint64(rows) && !c.bad {
		return fmt.Errorf("%w: LowCardinality keys are not one a row", ErrFrameCorrupt)
	}
	keys := c.bytes(rows << width)
	if c.bad {
		return errCut
	}
	for i := range rows {
		var k uint32
		switch width {
		case 0:
			k = uint32(keys[i])
		case 1:
			k = uint32(binary.LittleEndian.Uint16(keys[2*i:]))
		default:
			k = binary.LittleEndian.Uint32(keys[4*i:])
		}
		if uint64(k) >= n {
			return fmt.Errorf("%w: LowCardinality key %d of %d words", ErrFrameCorrupt, k, n)
		}
		col.keys = append(col.keys, k)
	}
	return nil
}

// attributes reads the map: offsets, keys, values. The values' words follow the
// dictionary's in the same list.
func (r *FrameReader) attributes(c *cursor, col *openColumn, rows int) error {
	version := c.uint64()
	offsets := c.bytes(8 * rows)
	if c.bad {
		return errCut
	}
	if version != lowCardVersion {
		return fmt.Errorf("%w: unknown LowCardinality version", ErrFrameCorrupt)
	}
	r.attrEnd = r.attrEnd[:0]
	var last uint64
	for i := range rows {
		end := binary.LittleEndian.Uint64(offsets[8*i:])
		if end < last || end > uint64(len(r.raw)) {
			return fmt.Errorf("%w: attribute offsets do not rise", ErrFrameCorrupt)
		}
		r.attrEnd, last = append(r.attrEnd, end), end
	}
	col.words.reset()
	if last == 0 {
		return nil
	}
	if err := lowCard(c, col, int(last)); err != nil {
		return err
	}
	c.moreWords(&col.words, int(last))
	if c.bad {
		return errCut
	}
	return nil
}

// Rows is the number of events of the open frame.
func (r *FrameReader) Rows() int { return r.rows }

// Ts is the time of event i in unix nanoseconds.
func (r *FrameReader) Ts(i int) int64 {
	return int64(binary.LittleEndian.Uint64(r.columns[inTs].fixed[8*i:]))
}

// ID is the id of event i.
func (r *FrameReader) ID(i int) (id ID) {
	b := r.columns[inID].fixed[16*i:]
	binary.BigEndian.PutUint64(id[0:], binary.LittleEndian.Uint64(b))
	binary.BigEndian.PutUint64(id[8:], binary.LittleEndian.Uint64(b[8:]))
	return id
}

// Check compares the open frame with its headers, its subject's month and the
// time it was stored at (unix ns), which decides what is too far ahead.
func (r *FrameReader) Check(f Frame, m Month, storedNs int64) error {
	if f.Rows != r.rows {
		return fmt.Errorf("%w: %s is %d, the block has %d rows", ErrFrameLies, HeaderRows, f.Rows, r.rows)
	}
	if f.RawBytes != len(r.raw) {
		return fmt.Errorf("%w: %s is %d, the block has %d bytes", ErrFrameLies, HeaderBytes, f.RawBytes, len(r.raw))
	}
	lo, hi := r.Ts(0), r.Ts(0)
	for i := 1; i < r.rows; i++ {
		lo, hi = min(lo, r.Ts(i)), max(hi, r.Ts(i))
	}
	if f.MinTs != lo || f.MaxTs != hi {
		return fmt.Errorf("%w: times %d to %d, the events have %d to %d", ErrFrameLies, f.MinTs, f.MaxTs, lo, hi)
	}
	if err := r.topic.CheckTimes(lo, hi, m, storedNs); err != nil {
		return err
	}
	if err := r.checkSizes(); err != nil {
		return err
	}
	return r.checkRules()
}

// slackBytes is by how much an event may be larger in a frame than Validate
// counted: numbers among its attributes have become text, and the mark of invalid
// UTF-8 was added.
const slackBytes = (MaxAttrs+1)*24 + len(AttrInvalidUTF8)

// checkSizes holds every event to the limits that Validate has.
func (r *FrameReader) checkSizes() error {
	attrs := &r.columns[inAttributes]
	values := len(attrs.words.ends) - len(attrs.keys)
	from := uint64(0)
	for i := range r.rows {
		n := 0
		for c := range r.columns {
			switch col := &r.columns[c]; col.typ {
			case chString:
				n += col.words.size(i)
			case chLowCard:
				n += col.words.size(int(col.keys[i]))
			}
		}
		end := r.attrEnd[i]
		if end-from > MaxAttrs+1 {
			return fmt.Errorf("%w: event %d has %d attributes, the limit is %d", ErrTooManyAttrs, i+1, end-from, MaxAttrs)
		}
		for k := from; k < end; k++ {
			n += attrs.words.size(int(attrs.keys[k])) + attrs.words.size(values+int(k))
		}
		if n > MaxEventBytes+slackBytes {
			return fmt.Errorf("%w: event %d has %d bytes, the limit is %d", ErrEventTooLarge, i+1, n, MaxEventBytes)
		}
		from = end
	}
	return nil
}

// CheckTimes reports whether events of the topic between lo and hi (unix ns) may stand
// under month m in a message stored at storedNs.
func (t *Topic) CheckTimes(lo, hi int64, m Month, storedNs int64) error {
	for _, ts := range []int64{lo, hi} {
		if err := validateTime(ts, storedNs, t.MaxFuture()); err != nil {
			return err
		}
	}
	for _, ts := range []int64{lo, hi} {
		if !m.Contains(ts) {
			return fmt.Errorf("%w: %s is not in %s", ErrFrameMonth, time.Unix(0, ts).UTC().Format(time.RFC3339Nano), m)
		}
	}
	return nil
}

// Event decodes event i whole. Promoted fields come back as attributes of their
// type, first; a field at its type's zero is left out, as it cannot be told
// from a missing one.
func (r *FrameReader) Event(i int) Event {
	e := Event{
		Time: time.Unix(0, r.Ts(i)).UTC(), ID: r.ID(i),
		Level: r.value(inLevel, i), Service: r.value(inService, i), Type: r.value(inType, i),
		UserID: r.value(inUserID, i), TraceID: r.value(inTraceID, i), SpanID: r.value(inSpanID, i), Message: r.value(inMessage, i),
	}
	for c := len(baseColumns); c < len(r.columns) && r.columns[c].typ != chUInt64; c++ {
		if a, ok := r.field(c, i); ok {
			e.Attrs = append(e.Attrs, a)
		}
	}
	from := uint64(0)
	if i > 0 {
		from = r.attrEnd[i-1]
	}
	col := &r.columns[inAttributes]
	values := len(col.words.ends) - len(col.keys)
	for k := from; k < r.attrEnd[i]; k++ {
		e.Attrs = append(e.Attrs, String(r.word(col, int(col.keys[k])), r.word(col, values+int(k))))
	}
	return e
}

func (r *FrameReader) field(c, i int) (Attr, bool) {
	col := &r.columns[c]
	switch col.typ {
	case chString, chLowCard:
		v := r.value(c, i)
		return String(col.name, v), v != ""
	case chBool:
		return Bool(col.name, col.fixed[i] != 0), col.fixed[i] != 0
	}
	if col.typ == chDecimal {
		d := decodeDecimal(col.fixed[decimalBytes*i:])
		return String(col.name, string(d.appendTo(nil))), !d.isZero()
	}
	v := binary.LittleEndian.Uint64(col.fixed[8*i:])
	switch col.typ {
	case chInt64:
		return Int64(col.name, int64(v)), v != 0
	case chFloat64:
		return Float64(col.name, math.Float64frombits(v)), v != 0
	default:
		return Time(col.name, time.Unix(0, int64(v))), v != 0
	}
}

func (r *FrameReader) value(c, i int) string {
	col := &r.columns[c]
	if col.typ == chLowCard {
		i = int(col.keys[i])
	}
	return r.word(col, i)
}

func (r *FrameReader) word(col *openColumn, i int) string {
	return string(r.raw[col.words.starts[i]:col.words.ends[i]])
}

// Raw is the open frame's decompressed block, valid until the next Open.
func (r *FrameReader) Raw() []byte { return r.raw }
