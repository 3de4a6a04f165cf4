package frame

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Reader opens frames: it checks the checksum, decompresses, and walks
// every column with bounds, so that what it accepts ClickHouse accepts too. Its
// buffers are reused from frame to frame; it is not safe for concurrent use.
type Reader struct {
	raw   []byte
	topic *schemas.Topic

	rows    int
	columns []openColumn
	attrEnd []uint64
	same    sameIDs
	table   []uint32 // of differ
}

// openColumn is one column inside the decompressed frame.
type openColumn struct {
	schemas.Column
	fixed []byte   // fixed-width values
	words wordList // String values, or the dictionary
	keys  []uint32 // dictionary key per value; nil for plain String
}

// Open reads a frame of topic t made under the given schema version. After an
// error the reader holds no frame but may be used again.
func (r *Reader) Open(payload []byte, t *schemas.Topic, schema int) error {
	r.rows, r.topic, r.same = 0, t, sameIDs{}
	if first := max(1, t.First); schema < first || schema > t.Version {
		return fmt.Errorf("%w: version %d, topic %q has versions %d to %d", schemas.ErrFrameSchema, schema, t.Name, first, t.Version)
	}
	var err error
	if r.raw, err = decompress(payload, r.raw); err != nil {
		return err
	}
	c := cursor{raw: r.raw}
	rows, err := r.walk(&c, t.FrameColumns(schema))
	if err != nil {
		return err
	}
	if len(c.raw) != c.at {
		return fmt.Errorf("%w: %d bytes after the last column", schemas.ErrFrameCorrupt, len(c.raw)-c.at)
	}
	r.rows = rows
	return nil
}

// walk reads the block: every column must be the expected one.
func (r *Reader) walk(c *cursor, want []schemas.Column) (rows int, err error) {
	ncols, nrows := c.uvarint(), c.uvarint()
	if c.bad {
		return 0, errCut
	}
	if nrows == 0 || nrows > schemas.MaxFrameRows {
		return 0, fmt.Errorf("%w: %d rows, a frame has 1 to %d", schemas.ErrFrameTooLarge, nrows, schemas.MaxFrameRows)
	}
	if ncols != uint64(len(want)) {
		return 0, fmt.Errorf("%w: %d columns, its schema version has %d", schemas.ErrFrameColumns, ncols, len(want))
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
		if string(name) != w.Name || string(typ) != w.Type {
			return 0, fmt.Errorf("%w: column %d is %.80q %.80q, it must be %q %q", schemas.ErrFrameColumns, i+1, name, typ, w.Name, w.Type)
		}
		col := &r.columns[i]
		col.Column, col.fixed, col.keys = w, nil, col.keys[:0]
		if err := r.column(c, col, rows); err != nil {
			return 0, fmt.Errorf("column %q: %w", w.Name, err)
		}
	}
	return rows, nil
}

func (r *Reader) column(c *cursor, col *openColumn, rows int) error {
	switch col.Type {
	case kinds.WireTime, kinds.WireInt64, kinds.WireFloat64, kinds.WireUInt64:
		col.fixed = c.bytes(8 * rows)
	case kinds.WireUUID, kinds.WireDecimal:
		col.fixed = c.bytes(16 * rows)
	case kinds.WireBool:
		col.fixed = c.bytes(rows)
		for _, b := range col.fixed {
			if b > 1 {
				return fmt.Errorf("%w: a Bool is %d", schemas.ErrFrameCorrupt, b)
			}
		}
	case kinds.WireString:
		c.words(&col.words, rows)
	case kinds.WireLowCardinality:
		if c.uint64() != lowCardVersion && !c.bad {
			return fmt.Errorf("%w: unknown LowCardinality version", schemas.ErrFrameCorrupt)
		}
		return lowCard(c, col, rows)
	case kinds.WireMap:
		return r.attributes(c, col, rows)
	}
	if c.bad {
		return errCut
	}
	return nil
}

var errCut = fmt.Errorf("%w: it ends in the middle", schemas.ErrFrameCorrupt)

// lowCard reads a dictionary and one key a row.
func lowCard(c *cursor, col *openColumn, rows int) error {
	meta, n := c.uint64(), c.uint64()
	width := meta & lowCardKeyMask
	if c.bad {
		return errCut
	}
	// ClickHouse refuses flags it does not know, and then the whole insert.
	if meta&^lowCardUpdateBit != lowCardExtraBit|width || width > 2 || n > uint64(rows)+1 {
		return fmt.Errorf("%w: LowCardinality flags 0x%x with %d words for %d rows", schemas.ErrFrameCorrupt, meta, n, rows)
	}
	c.words(&col.words, int(n))
	if c.uint64() != uint64(rows) && !c.bad {
		return fmt.Errorf("%w: LowCardinality keys are not one a row", schemas.ErrFrameCorrupt)
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
			return fmt.Errorf("%w: LowCardinality key %d of %d words", schemas.ErrFrameCorrupt, k, n)
		}
		col.keys = append(col.keys, k)
	}
	return nil
}

// attributes reads the map: offsets, keys, values. The values' words follow the
// dictionary's in the same list.
func (r *Reader) attributes(c *cursor, col *openColumn, rows int) error {
	version := c.uint64()
	offsets := c.bytes(8 * rows)
	if c.bad {
		return errCut
	}
	if version != lowCardVersion {
		return fmt.Errorf("%w: unknown LowCardinality version", schemas.ErrFrameCorrupt)
	}
	r.attrEnd = r.attrEnd[:0]
	var last uint64
	for i := range rows {
		end := binary.LittleEndian.Uint64(offsets[8*i:])
		if end < last || end > uint64(len(r.raw)) {
			return fmt.Errorf("%w: attribute offsets do not rise", schemas.ErrFrameCorrupt)
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
func (r *Reader) Rows() int { return r.rows }

// Ts is the time of event i in unix nanoseconds.
func (r *Reader) Ts(i int) int64 {
	return int64(binary.LittleEndian.Uint64(r.columns[inTs].fixed[8*i:]))
}

// ID is the id of event i.
func (r *Reader) ID(i int) (id schemas.ID) {
	b := r.columns[inID].fixed[16*i:]
	binary.BigEndian.PutUint64(id[0:], binary.LittleEndian.Uint64(b))
	binary.BigEndian.PutUint64(id[8:], binary.LittleEndian.Uint64(b[8:]))
	return id
}

// Check compares the open frame with its headers, its subject's month and lane and the
// time it was stored at (unix ns), which decides what is too far ahead.
func (r *Reader) Check(f schemas.Frame, m schemas.Month, lane int, storedNs int64) error {
	if f.Rows != r.rows {
		return fmt.Errorf("%w: %s is %d, the block has %d rows", schemas.ErrFrameLies, schemas.HeaderRows, f.Rows, r.rows)
	}
	if f.RawBytes != len(r.raw) {
		return fmt.Errorf("%w: %s is %d, the block has %d bytes", schemas.ErrFrameLies, schemas.HeaderBytes, f.RawBytes, len(r.raw))
	}
	lo, hi := r.Ts(0), r.Ts(0)
	for i := 1; i < r.rows; i++ {
		lo, hi = min(lo, r.Ts(i)), max(hi, r.Ts(i))
	}
	if f.MinTs != lo || f.MaxTs != hi {
		return fmt.Errorf("%w: times %d to %d, the events have %d to %d", schemas.ErrFrameLies, f.MinTs, f.MaxTs, lo, hi)
	}
	if err := r.topic.CheckTimes(lo, hi, m, storedNs); err != nil {
		return err
	}
	if err := r.checkSizes(); err != nil {
		return err
	}
	if err := r.checkRules(); err != nil {
		return err
	}
	if err := r.checkIDs(lane); err != nil {
		return err
	}
	return r.checkLane(lane)
}

// slackBytes is by how much an event may be larger in a frame than Validate
// counted: numbers among its attributes have become text, and the mark of invalid
// UTF-8 was added.
const slackBytes = (schemas.MaxAttrs+1)*24 + len(schemas.AttrInvalidUTF8)

// checkSizes holds every event to the limits that Validate has.
func (r *Reader) checkSizes() error {
	attrs := &r.columns[inAttributes]
	values := len(attrs.words.ends) - len(attrs.keys)
	from := uint64(0)
	for i := range r.rows {
		n := 0
		for c := range r.columns {
			switch col := &r.columns[c]; col.Type {
			case kinds.WireString:
				n += col.words.size(i)
			case kinds.WireLowCardinality:
				n += col.words.size(int(col.keys[i]))
			}
		}
		end := r.attrEnd[i]
		if end-from > schemas.MaxAttrs+1 {
			return fmt.Errorf("%w: event %d has %d attributes, the limit is %d", schemas.ErrTooManyAttrs, i+1, end-from, schemas.MaxAttrs)
		}
		for k := from; k < end; k++ {
			n += attrs.words.size(int(attrs.keys[k])) + attrs.words.size(values+int(k))
		}
		if n > schemas.MaxEventBytes+slackBytes {
			return fmt.Errorf("%w: event %d has %d bytes, the limit is %d", schemas.ErrEventTooLarge, i+1, n, schemas.MaxEventBytes)
		}
		from = end
	}
	return nil
}

// Event decodes event i whole. Promoted fields come back as attributes of their
// type, first; a field at its type's zero is left out, as it cannot be told
// from a missing one.
func (r *Reader) Event(i int) schemas.Event {
	e := schemas.Event{
		Time: time.Unix(0, r.Ts(i)).UTC(), ID: r.ID(i),
		Level: r.value(inLevel, i), Service: r.value(inService, i), Type: r.value(inType, i),
		UserID: r.value(inUserID, i), TraceID: r.value(inTraceID, i), SpanID: r.value(inSpanID, i), Message: r.value(inMessage, i),
	}
	for c := len(schemas.BaseColumns); c < len(r.columns) && r.columns[c].Type != kinds.WireUInt64; c++ {
		if a, ok := r.field(c, i); ok {
			e.Attrs = append(e.Attrs, a)
		}
	}
	r.labels(&e, i)
	return e
}

func (r *Reader) field(c, i int) (schemas.Attr, bool) {
	col := &r.columns[c]
	switch col.Type {
	case kinds.WireString, kinds.WireLowCardinality:
		v := r.value(c, i)
		return schemas.String(col.Name, v), v != ""
	case kinds.WireBool:
		return schemas.Bool(col.Name, col.fixed[i] != 0), col.fixed[i] != 0
	}
	if col.Type == kinds.WireDecimal {
		d := schemas.DecodeDecimal(col.fixed[schemas.DecimalBytes*i:])
		return schemas.String(col.Name, string(d.AppendText(nil))), !d.IsZero()
	}
	v := binary.LittleEndian.Uint64(col.fixed[8*i:])
	switch col.Type {
	case kinds.WireInt64:
		return schemas.Int64(col.Name, int64(v)), v != 0
	case kinds.WireFloat64:
		return schemas.Float64(col.Name, math.Float64frombits(v)), v != 0
	default:
		return schemas.Time(col.Name, time.Unix(0, int64(v))), v != 0
	}
}

func (r *Reader) value(c, i int) string {
	col := &r.columns[c]
	if col.Type == kinds.WireLowCardinality {
		i = int(col.keys[i])
	}
	return r.word(col, i)
}

func (r *Reader) word(col *openColumn, i int) string {
	return string(r.raw[col.words.starts[i]:col.words.ends[i]])
}

// Raw is the open frame's decompressed block, valid until the next Open.
func (r *Reader) Raw() []byte { return r.raw }
