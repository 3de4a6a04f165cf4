package intake

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// Record is one event's worth of input, or why it is none.
type Record struct {
	// Line is the number of its first line, from 1; Lines how many it has.
	Line, Lines int
	// Event is what it says. Its Time is zero when nothing asked for one.
	Event schemas.Event
	// Err is why it is refused; Event is then empty.
	Err error
	// OtherTime is an attribute of an event without a time that may be meant for it; empty: none is known.
	OtherTime string
	// Raw is the record as it was read, without its last line end; of one too
	// long only the beginning. It is valid until the next record is read.
	Raw []byte
}

// Reader reads records. It is not safe for concurrent use.
type Reader struct {
	opts  Options
	clock *clock
	keys  rawjson.Keys
	lines *lineReader
	csv   *csvTable
	json  *jsonCutter
	parse func(raw []byte) (schemas.Event, error)

	blank   int
	stopped error // what Options.Stop returned within a record
	err     error
}

// NewReader reads records from r. Options that Validate refuses make the first
// Next fail.
func NewReader(r io.Reader, o Options) *Reader {
	o.MaxRecordBytes = o.maxRecordBytes()
	d := &Reader{opts: o, err: o.Validate()}
	if d.err != nil {
		return d
	}
	d.clock, _ = newClock(&d.opts) // Validate made one
	d.keys = rawjson.Keys{Times: o.timeFields(), Untimed: o.Untimed, ParseTime: d.clock.parse, User: o.UserField, Columns: o.Columns, Topic: o.Topic}
	d.lines = newLineReader(r, o.MaxRecordBytes)
	switch o.Format {
	case FormatText:
		d.parse = d.text
	case FormatNDJSON, FormatJSON:
		d.json = newJSONCutter(d.lines, o)
		if o.TsFormat == "" && (o.Location == nil || o.Location == time.UTC) {
			d.keys.ParseTime = nil // JSON tells numbers from texts
		}
		d.parse = d.keys.Parse
	case FormatLogfmt:
		d.parse = d.logfmt
	case FormatCSV:
		d.csv = &csvTable{comma: o.Delimiter}
	}
	return d
}

// Next is the next record; io.EOF when there is none. After an error it returns
// the same one forever.
func (d *Reader) Next() (Record, error) {
	if d.err != nil {
		return Record{}, d.err
	}
	var rec Record
	if d.opts.Stop != nil {
		d.err = d.opts.Stop()
	}
	switch {
	case d.err != nil:
	case d.csv != nil:
		rec, d.err = d.nextRow()
	case d.json != nil && d.json.whole():
		rec, d.err = d.nextValue()
	default:
		rec, d.err = d.nextRecord()
	}
	if d.err != nil {
		if !errors.Is(d.err, io.EOF) && d.lines.count > 0 {
			d.err = fmt.Errorf("after line %d: %w", d.lines.count, d.err)
		}
		return Record{}, d.err
	}
	d.finish(&rec)
	return rec, nil
}

// Value is the record of a JSON value that is in memory, as a line of NDJSON would be. It
// reads nothing of the reader's input, and the record has no place in it.
func (d *Reader) Value(raw []byte) Record {
	if d.err != nil {
		return Record{Err: d.err}
	}
	rec := Record{Raw: raw}
	if rec.Err = d.tooLong(len(raw)); rec.Err == nil {
		rec.Event, rec.Err = d.parse(raw)
	}
	d.finish(&rec)
	return rec
}

// Lines is how many lines were read so far.
func (d *Reader) Lines() int {
	if d.lines == nil {
		return 0
	}
	return d.lines.count
}

func (d *Reader) nextRecord() (Record, error) {
	blank := blankLine
	if d.opts.Format == FormatText {
		blank = emptyLine
	}
	var begin func([]byte) (bool, error)
	if d.opts.Multiline != nil {
		begin = d.begins
	}
	r, err := d.lines.group(begin, blank, &d.blank)
	if err != nil {
		return Record{}, err
	}
	rec := Record{Line: r.line, Lines: r.lines, Raw: r.raw}
	if rec.Err = d.tooLong(r.size); rec.Err == nil {
		raw := r.raw
		if r.line == 1 {
			raw = withoutMark(raw)
		}
		rec.Event, rec.Err = d.parse(raw)
	}
	return rec, d.stopped
}

func (d *Reader) tooLong(size int) error {
	if size <= d.opts.MaxRecordBytes {
		return nil
	}
	return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLong, size, d.opts.MaxRecordBytes)
}

// finish fills in the defaults and insists on the time that was asked for.
func (d *Reader) finish(rec *Record) {
	if rec.Err == nil && rec.Event.Time.IsZero() && !d.opts.Untimed {
		rec.OtherTime = otherTime(&rec.Event)
		switch offer := rec.OtherTime; {
		case d.opts.TsFormat != "":
			rec.Err = fmt.Errorf("%w: format %s looks like %s", ErrNoTime, d.clock.name(), d.clock.example())
		case d.opts.RequireTime && offer != "":
			rec.Err = fmt.Errorf("%w: name the field that has it; %q may", ErrNoTime, offer)
		case d.opts.RequireTime:
			rec.Err = fmt.Errorf("%w: name the field that has it, or the format", ErrNoTime)
		}
	}
	if rec.Err != nil {
		rec.Event = schemas.Event{}
		return
	}
	e := &rec.Event
	e.Service, e.Type, e.Level = cmp.Or(e.Service, d.opts.Service), cmp.Or(e.Type, d.opts.Type), cmp.Or(e.Level, d.opts.Level)
}

// withoutMark drops a byte order mark.
func withoutMark(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }
