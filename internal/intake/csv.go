package intake

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas/rawjson"
)

// csvTable reads rows that were cut out of the input before. encoding/csv alone
// would take everything up to the end into memory when one quote is not closed.
type csvTable struct {
	comma   rune // 0: a comma
	columns []string
	rows    *csv.Reader
	fill    bytes.Reader
}

// row parses one row, of one line or of several.
func (t *csvTable) row(raw []byte) ([]string, error) {
	if t.rows == nil {
		t.rows = csv.NewReader(&t.fill)
		t.rows.ReuseRecord = true
		if t.comma != 0 {
			t.rows.Comma = t.comma
		}
		t.rows.FieldsPerRecord = -1 // counted here, to say both numbers
	}
	// The library would make a line feed of a line end inside a cell.
	if inner := chomp(raw); bytes.Contains(inner, []byte("\r\n")) {
		raw = append(bytes.ReplaceAll(inner, []byte("\r\n"), []byte("\r\r\n")), raw[len(inner):]...)
	}
	t.fill.Reset(raw)
	cells, err := t.rows.Read()
	if err != nil {
		t.rows = nil // it may still hold the rest of this row
		var at *csv.ParseError
		if errors.As(err, &at) {
			err = fmt.Errorf("%w at byte %d of its line %d", at.Err, at.Column, at.Line)
		}
		return nil, fmt.Errorf("%w: csv: %w", ErrSyntax, err)
	}
	return cells, nil
}

// nextRow is the next row as a record; the header is read first.
func (d *Reader) nextRow() (Record, error) {
	if d.csv.columns == nil {
		if err := d.header(); err != nil {
			return Record{}, err
		}
	}
	rec, cells, err := d.cutRow()
	if err != nil || rec.Err != nil {
		return rec, err
	}
	if len(cells) != len(d.csv.columns) {
		rec.Err = fmt.Errorf("%w: csv: %d cells, the header has %d", ErrSyntax, len(cells), len(d.csv.columns))
		return rec, nil
	}
	pairs := make([]rawjson.Pair, 0, len(cells))
	for i, c := range cells {
		if c != "" {
			pairs = append(pairs, rawjson.Pair{Key: d.csv.columns[i], Value: c})
		}
	}
	if rec.Event, err = d.keys.FromPairs(pairs); err != nil {
		rec.Err = fmt.Errorf("%w: %w", ErrField, err)
	}
	return rec, nil
}

// header reads the names of the columns; one without a name is called by its
// number.
func (d *Reader) header() error {
	rec, cells, err := d.cutRow()
	switch {
	case errors.Is(err, io.EOF):
		return err // an empty input has no records and needs no header
	case err != nil:
		return err
	case rec.Err != nil:
		return fmt.Errorf("%w: %w", ErrHeader, rec.Err)
	}
	d.csv.columns = slices.Clone(cells)
	for i, c := range d.csv.columns {
		if c == "" {
			d.csv.columns[i] = "column_" + strconv.Itoa(i+1)
		}
	}
	if times := d.opts.timeFields(); len(times) > 0 && !slices.ContainsFunc(times, func(name string) bool { return slices.Contains(d.csv.columns, name) }) {
		return fmt.Errorf("%w: it has no column %q, it has %s", ErrHeader, d.opts.TsField, strings.Join(d.csv.columns, ", "))
	}
	for _, name := range append(slices.Sorted(maps.Keys(d.opts.Columns)), d.opts.UserField) {
		if name != "" && !slices.Contains(d.csv.columns, name) {
			return fmt.Errorf("%w: it has no column %q, it has %s", ErrHeader, name, strings.Join(d.csv.columns, ", "))
		}
	}
	return nil
}

// cutRow reads the lines of one row: as many as it takes until its quotes are
// even. When they never become so within the bound, or the row has misplaced
// quotes, only its first line is refused and the others are read again, so that
// one bad quote costs one line.
func (d *Reader) cutRow() (Record, []string, error) {
	var read []line // of the row, so far
	var r record
	for odd := false; ; {
		ln, err := d.lines.next()
		if errors.Is(err, io.EOF) && len(read) > 0 {
			break
		}
		if err != nil {
			return Record{}, nil, err
		}
		if len(read) == 0 && len(bytes.Trim(ln.text, "\r\n")) == 0 {
			d.blank++
			continue
		}
		read = append(read, ln)
		r.add(ln, d.lines.max)
		odd = odd != (bytes.Count(ln.text, []byte{'"'})%2 == 1)
		if !odd || r.size > d.lines.max {
			break
		}
	}
	whole := r.raw
	r.close()
	rec := Record{Line: r.line, Lines: r.lines, Raw: r.raw}
	var cells []string
	if rec.Err = d.tooLong(r.size); rec.Err == nil {
		if r.line == 1 {
			whole = withoutMark(whole)
		}
		cells, rec.Err = d.csv.row(whole)
	}
	if rec.Err != nil && len(read) > 1 {
		d.lines.unread(read[1:]...)
		rec.Lines, rec.Raw = 1, slices.Clone(chomp(read[0].text))
		rec.Err = fmt.Errorf("%w: csv: a quote that begins here is not closed well: %w", ErrSyntax, rec.Err)
	}
	return rec, cells, nil
}
