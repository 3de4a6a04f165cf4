package frame

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// LineWriter writes events of open frames as JSON, one object a line, byte for
// byte as ClickHouse's JSONEachRow does with the settings that pages are read
// with: times in ISO form, 64-bit integers bare, invalid UTF-8 replaced. So a line
// is the same whether an event was read from a stream or from a table. Once its
// buffers have grown it allocates nothing. It is not safe for concurrent use.
type LineWriter struct {
	t      *schemas.Topic
	r      *Reader
	names  [][]byte  // `,"name":` of every column
	newer  []newer   // the fields that came after the frame's schema version
	restOf int       // that version
	words  [][]place // per column: its dictionary, escaped and quoted
	buf    []byte    // what words points into
	tail   []byte    // month, shard, pos and the end of the line

	sec    int64 // the second that stamp shows
	stamp  [len(secondForm)]byte
	values int // of the attributes: where they begin in the word list
}

// newer is a field that came after the frame's schema version, and `,"name":`.
type newer struct {
	field *schemas.Field
	name  []byte
}

// place is where a text lies in a buffer.
type place struct{ from, to uint32 }

const secondForm = "2006-01-02T15:04:05"

// NewLineWriter is for events of a topic.
func NewLineWriter(t *schemas.Topic) *LineWriter {
	w := &LineWriter{t: t, sec: math.MinInt64, restOf: -1}
	for i, c := range t.FrameColumns(t.Version) {
		name := append(appendJSONText(nil, []byte(c.Name)), ':')
		if i > 0 {
			name = append([]byte{','}, name...)
		}
		w.names = append(w.names, name)
	}
	return w
}

// Open begins with the frame that r holds open, of the given schema version, of a
// shard.
func (w *LineWriter) Open(r *Reader, schema int, m schemas.Month, s schemas.Shard) {
	w.r = r
	if w.restOf != schema {
		w.newer, w.restOf = w.newer[:0], schema
		for i := len(w.t.FieldsAt(schema)); i < len(w.t.Fields); i++ {
			w.newer = append(w.newer, newer{&w.t.Fields[i], w.names[len(schemas.BaseColumns)+i]})
		}
	}
	for len(w.words) < len(r.columns) {
		w.words = append(w.words, nil)
	}
	w.buf = w.buf[:0]
	for c := range r.columns {
		col := &r.columns[c]
		w.words[c] = w.words[c][:0]
		if col.Type != kinds.WireLowCardinality && col.Type != kinds.WireMap {
			continue
		}
		n := len(col.words.ends)
		if col.Type == kinds.WireMap {
			n -= len(col.keys) // the values stand behind the keys' dictionary
			w.values = n
		}
		for i := range n {
			from := uint32(len(w.buf))
			w.buf = appendJSONText(w.buf, r.raw[col.words.starts[i]:col.words.ends[i]])
			w.words[c] = append(w.words[c], place{from, uint32(len(w.buf))})
		}
	}
	w.tail = append(w.tail[:0], `,"month":`...)
	w.tail = strconv.AppendUint(w.tail, uint64(m), 10)
	w.tail = append(w.tail, `,"shard":"`...)
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], uint64(s))
	w.tail = hex.AppendEncode(w.tail, id[:])
	w.tail = append(w.tail, `","pos":`...)
}

// fieldZeros are the types' zeros as JSON.
var fieldZeros = map[schemas.FieldType]string{
	schemas.TypeString: `""`, schemas.TypeLowCardinality: `""`, schemas.TypeInt64: "0", schemas.TypeFloat64: "0", schemas.TypeBool: "false",
	schemas.TypeJSON: `""`, schemas.TypeDecimal: "0", schemas.TypeTimestamp: `"1970-01-01T00:00:00.000000000Z"`,
}

// olderField appends the value of a field that the frame does not have, as event i has it among
// its attributes.
func (w *LineWriter) olderField(dst []byte, f *schemas.Field, i int) []byte {
	a, ok := w.r.Older(f, i)
	if !ok {
		return append(dst, fieldZeros[f.Type]...)
	}
	switch f.Type {
	case schemas.TypeInt64:
		n, _ := a.AsInt64()
		return strconv.AppendInt(dst, n, 10)
	case schemas.TypeFloat64:
		v, _ := a.AsFloat64()
		return appendJSONFloat(dst, v)
	case schemas.TypeBool:
		v, _ := a.AsBool()
		return strconv.AppendBool(dst, v)
	case schemas.TypeTimestamp:
		ns, _ := a.AsTime()
		return w.appendTime(dst, ns)
	case schemas.TypeDecimal:
		d, _ := a.AsDecimal()
		return d.AppendText(dst)
	}
	return appendJSONText(dst, []byte(a.Text()))
}

// Append appends event i as a line, at a position of its shard.
func (w *LineWriter) Append(dst []byte, i int, pos uint64) []byte {
	r := w.r
	dst = append(dst, '{')
	for c := range r.columns {
		col := &r.columns[c]
		if c == len(w.names) {
			break // a column that is not an event's: see Reader.OpenStored
		}
		dst = append(dst, w.names[c]...)
		switch col.Type {
		case kinds.WireString:
			dst = appendJSONText(dst, r.raw[col.words.starts[i]:col.words.ends[i]])
		case kinds.WireLowCardinality:
			at := w.words[c][col.keys[i]]
			dst = append(dst, w.buf[at.from:at.to]...)
		case kinds.WireMap:
			dst = w.attributes(dst, c, col, i)
		case kinds.WireTime:
			dst = w.appendTime(dst, int64(binary.LittleEndian.Uint64(col.fixed[8*i:])))
		case kinds.WireUUID:
			dst = appendUUID(dst, col.fixed[16*i:])
		case kinds.WireInt64:
			dst = strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(col.fixed[8*i:])), 10)
		case kinds.WireFloat64:
			dst = appendJSONFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(col.fixed[8*i:])))
		case kinds.WireDecimal:
			dst = schemas.DecodeDecimal(col.fixed[schemas.DecimalBytes*i:]).AppendText(dst)
		case kinds.WireBool:
			dst = strconv.AppendBool(dst, col.fixed[i] != 0)
		}
	}
	for k := range w.newer {
		dst = append(dst, w.newer[k].name...)
		dst = w.olderField(dst, w.newer[k].field, i)
	}
	dst = append(dst, w.tail...)
	dst = strconv.AppendUint(dst, pos, 10)
	return append(dst, '}', '\n')
}

// AppendMessage appends the message of event i byte for byte, and a line end.
func (w *LineWriter) AppendMessage(dst []byte, i int) []byte {
	col := &w.r.columns[inMessage]
	return append(append(dst, w.r.raw[col.words.starts[i]:col.words.ends[i]]...), '\n')
}

func (w *LineWriter) attributes(dst []byte, c int, col *openColumn, i int) []byte {
	from := uint64(0)
	if i > 0 {
		from = w.r.attrEnd[i-1]
	}
	dst = append(dst, '{')
	for k := from; k < w.r.attrEnd[i]; k++ {
		if k > from {
			dst = append(dst, ',')
		}
		at := w.words[c][col.keys[k]]
		dst = append(dst, w.buf[at.from:at.to]...)
		dst = append(dst, ':')
		v := w.values + int(k)
		dst = appendJSONText(dst, w.r.raw[col.words.starts[v]:col.words.ends[v]])
	}
	return append(dst, '}')
}

// appendTime writes unix nanoseconds in ISO form, quoted. Events of one second
// come together, so its text is kept.
func (w *LineWriter) appendTime(dst []byte, ns int64) []byte {
	sec, frac := ns/1e9, ns%1e9
	if frac < 0 {
		sec, frac = sec-1, frac+1e9
	}
	if sec != w.sec {
		w.sec = sec
		time.Unix(sec, 0).UTC().AppendFormat(w.stamp[:0], secondForm)
	}
	dst = append(append(dst, '"'), w.stamp[:]...)
	n := len(dst)
	dst = append(dst, ".000000000Z\""...)
	for at := n + 9; frac > 0; at-- {
		dst[at] = byte('0' + frac%10)
		frac /= 10
	}
	return dst
}

// appendUUID writes a UUID as ClickHouse keeps it: two little-endian halves.
func appendUUID(dst, b []byte) []byte {
	var id [16]byte
	binary.BigEndian.PutUint64(id[0:], binary.LittleEndian.Uint64(b))
	binary.BigEndian.PutUint64(id[8:], binary.LittleEndian.Uint64(b[8:]))
	dst = append(dst, '"')
	for i, c := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(dst, '"')
}

// appendJSONFloat writes the shortest decimal form that reads back the same:
// plain between 1e-6 and 1e21, else with an exponent. What JSON has no number for
// is null.
func appendJSONFloat(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	form := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	n := len(dst)
	dst = strconv.AppendFloat(dst, v, form, -1, 64)
	if form == 'e' { // Go writes e+21 and e-07, ClickHouse e21 and e-7
		for i := len(dst) - 1; i > n; i-- {
			if dst[i] == 'e' {
				exp := dst[i+1:]
				neg := exp[0] == '-'
				digits := exp[1:]
				if digits[0] == '0' && len(digits) > 1 {
					digits = digits[1:]
				}
				dst = dst[:i+1]
				if neg {
					dst = append(dst, '-')
				}
				return append(dst, digits...)
			}
		}
	}
	return dst
}
