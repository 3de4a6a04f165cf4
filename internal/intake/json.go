package intake

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// jsonCutter cuts JSON documents into records: objects one after another, on one line
// or on several, and the elements of arrays. With a path it takes the elements of the array
// that each document has there, and passes over all else of it. It holds one record at most.
//
// Only what must be known to cut is checked here: brackets, strings, commas. What
// is between is the record's, and is parsed there.
type jsonCutter struct {
	r     *bufio.Reader
	lines *lineReader // whose count of lines goes on
	max   int
	path  []string
	json  bool // the format says so

	begun bool
	cut   bool     // the input is cut here, not at line ends
	open  []nested // from the outermost
	value []byte   // being read, up to max
	size  int
}

// nested is an array, or an object on the way to the records, that is not closed yet.
type nested struct {
	closing byte
	keys    int  // of the path, found above it
	line    int  // where it began
	many    bool // it had an element
}

func newJSONCutter(lines *lineReader, o Options) *jsonCutter {
	c := &jsonCutter{r: lines.r, lines: lines, max: o.MaxRecordBytes, json: o.Format == FormatJSON}
	if o.Records != "" {
		c.path = strings.Split(o.Records, ".")
	}
	return c
}

// whole reports whether the input is read by values and not by lines: it is, in
// format json, and where an input of NDJSON begins with an array.
func (c *jsonCutter) whole() bool {
	if !c.begun {
		c.begun = true
		if mark, _ := c.r.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
			_, _ = c.r.Discard(3)
		}
		c.cut = c.json
		for n := 1; !c.json && n < readBytes; n++ {
			head, err := c.r.Peek(n)
			if err != nil {
				break
			}
			if b := head[n-1]; !isJSONSpace(b) {
				c.cut = b == '['
				break
			}
		}
		if c.cut {
			c.lines.count++ // the first line
		}
	}
	return c.cut
}

// nextValue is the next record of a JSON document.
func (d *Reader) nextValue() (Record, error) {
	c := d.json
	if err := c.find(); err != nil {
		return Record{}, err
	}
	rec := Record{Line: c.lines.count}
	if err := c.read(true); err != nil {
		return Record{}, err
	}
	rec.Lines, rec.Raw = c.lines.count-rec.Line+1, bytes.Clone(c.value)
	if rec.Err = d.tooLong(c.size); rec.Err == nil {
		rec.Event, rec.Err = d.parse(rec.Raw)
	}
	return rec, nil
}

// find goes to where the next record begins; io.EOF after the last.
func (c *jsonCutter) find() error {
	for {
		b, err := c.peek()
		if err != nil {
			if n := len(c.open); n > 0 && errors.Is(err, io.EOF) {
				return fmt.Errorf("%w: json: what begins with %q in line %d is not closed: the input was cut short", ErrSyntax, opening(c.open[n-1].closing), c.open[n-1].line)
			}
			return err
		}
		if len(c.open) == 0 {
			switch {
			case b == '[' && len(c.path) == 0:
				c.enter(']', 0)
			case b == '{' && len(c.path) > 0:
				c.enter('}', 0)
			case len(c.path) > 0:
				return fmt.Errorf("%w: json: line %d begins with %q, an object with %q was expected", ErrSyntax, c.lines.count, b, strings.Join(c.path, "."))
			default:
				return nil
			}
			continue
		}
		in := &c.open[len(c.open)-1]
		if b == in.closing {
			c.skipByte()
			c.open = c.open[:len(c.open)-1]
			continue
		}
		if in.many {
			if b != ',' {
				return fmt.Errorf("%w: json: line %d has %q where a comma or %q was expected", ErrSyntax, c.lines.count, b, in.closing)
			}
			c.skipByte()
		} else {
			in.many = true
		}
		if in.closing == ']' {
			b, err = c.peek()
			if err == nil && b == ']' {
				return fmt.Errorf("%w: json: line %d has a comma before %q", ErrSyntax, c.lines.count, b)
			}
			if err != nil {
				continue // reported above
			}
			return nil
		}
		if err := c.member(in.keys); err != nil {
			return err
		}
	}
}

// member passes over a member of an object, or enters it when the path leads there.
func (c *jsonCutter) member(keys int) error {
	if _, err := c.peek(); err != nil {
		return c.short(err)
	}
	if err := c.read(true); err != nil {
		return err
	}
	key := strings.Trim(string(c.value), `"`)
	if b, err := c.peek(); err != nil || b != ':' {
		return c.short(cmpError(err, fmt.Errorf("%w: json: line %d has no colon after the key %q", ErrSyntax, c.lines.count, key)))
	}
	c.skipByte()
	b, err := c.peek()
	if err != nil {
		return c.short(err)
	}
	if key != c.path[keys] {
		return c.read(false)
	}
	switch last := keys == len(c.path)-1; {
	case last && b == '[':
		c.enter(']', len(c.path))
	case !last && b == '{':
		c.enter('}', keys+1)
	default:
		return fmt.Errorf("%w: json: %q in line %d is not %s", ErrSyntax, strings.Join(c.path[:keys+1], "."), c.lines.count, map[bool]string{true: "an array", false: "an object"}[last])
	}
	return nil
}

func cmpError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// short says that the input ends where it must not.
func (c *jsonCutter) short(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: json: the input was cut short in line %d", ErrSyntax, c.lines.count)
	}
	return err
}

func (c *jsonCutter) enter(closing byte, keys int) {
	c.open = append(c.open, nested{closing: closing, keys: keys, line: c.lines.count})
	c.skipByte()
}

func opening(closing byte) string { return map[byte]string{']': "[", '}': "{"}[closing] }

// peek returns the next byte that is not white space, and leaves it there.
func (c *jsonCutter) peek() (byte, error) {
	for {
		b, err := c.r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !isJSONSpace(b) {
			return b, c.r.UnreadByte()
		}
		if b == '\n' {
			c.lines.count++
		}
	}
}

func (c *jsonCutter) skipByte() { _, _ = c.r.ReadByte() }

// read takes the value that begins here. Of one that is kept it holds up to max bytes.
func (c *jsonCutter) read(keep bool) error {
	c.value, c.size = c.value[:0], 0
	depth, text := 0, false
	for {
		b, err := c.r.ReadByte()
		if errors.Is(err, io.EOF) && depth == 0 && !text && c.size > 0 {
			return nil // a number at the end
		}
		if err != nil {
			return c.short(err)
		}
		if !text && depth == 0 && c.size > 0 && (isJSONSpace(b) || strings.IndexByte(",]}:", b) >= 0) {
			return c.r.UnreadByte() // behind a number or a word
		}
		c.size++
		if keep && len(c.value) < c.max {
			c.value = append(c.value, b)
		}
		if b == '\n' {
			c.lines.count++
		}
		switch {
		case text && b == '\\':
			if b, err = c.r.ReadByte(); err != nil {
				return c.short(err)
			}
			if c.size++; keep && len(c.value) < c.max {
				c.value = append(c.value, b)
			}
			continue
		case b == '"':
			text = !text
		case !text && (b == '{' || b == '['):
			depth++
		case !text && (b == '}' || b == ']'):
			depth--
		}
		if !text && depth <= 0 && (b == '"' || b == '}' || b == ']') {
			return nil
		}
	}
}

func isJSONSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' || b == 0x1e }
