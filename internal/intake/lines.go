package intake

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// line is one line of the input with its end. text is cut where a record may
// not be longer; size is the whole line's, end how much of it is the line end.
type line struct {
	number    int
	text      []byte
	size, end int
}

// lineReader reads lines and takes them back.
type lineReader struct {
	r     *bufio.Reader
	max   int // bytes kept of a line
	count int // lines read from r
	back  []line
	buf   []byte // of records of one line, from one to the next
}

// readBytes is the buffer of the input: large enough that a system call is
// noise beside parsing.
const readBytes = 64 << 10

func newLineReader(r io.Reader, maxBytes int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, readBytes), max: maxBytes + len("\r\n")}
}

// next is the next line, or the input's error.
func (l *lineReader) next() (line, error) { return l.nextInto(nil) }

// nextInto is next with the text in buf where that has room.
func (l *lineReader) nextInto(buf []byte) (line, error) {
	if n := len(l.back); n > 0 {
		ln := l.back[n-1]
		l.back = l.back[:n-1]
		return ln, nil
	}
	ln := line{text: buf}
	var last byte
	for {
		chunk, err := l.r.ReadSlice('\n')
		ln.size += len(chunk)
		ln.end = lineEnd(chunk, last)
		ln.text = append(ln.text, chunk[:min(len(chunk), l.max-len(ln.text))]...)
		if len(chunk) > 0 {
			last = chunk[len(chunk)-1]
		}
		if errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, ErrPause) && ln.size > 0 {
			continue // the rest of the line is to come
		}
		if err != nil && (!errors.Is(err, io.EOF) || ln.size == 0) {
			return line{}, err
		}
		l.count++
		ln.number = l.count
		return ln, nil
	}
}

// unread gives lines back, to be read again in the same order.
func (l *lineReader) unread(lines ...line) {
	for i := len(lines) - 1; i >= 0; i-- {
		l.back = append(l.back, lines[i])
	}
}

// lineEnd is how many bytes at the end of b end the line; before is the byte
// that came before b.
func lineEnd(b []byte, before byte) int {
	n := len(b)
	if n == 0 || b[n-1] != '\n' {
		return 0
	}
	if n > 1 {
		before = b[n-2]
	}
	if before == '\r' {
		return 2
	}
	return 1
}

// chomp cuts the line end off.
func chomp(b []byte) []byte { return b[:len(b)-lineEnd(b, 0)] }

// record is the lines of one event. raw is cut like a line's text.
type record struct {
	line, lines int
	raw         []byte
	size, end   int
}

func (r *record) add(ln line, maxBytes int) {
	if r.lines == 0 {
		r.line = ln.number
	}
	r.lines++
	r.size, r.end = r.size+ln.size, ln.end
	if r.raw == nil {
		r.raw = ln.text // not longer than maxBytes, and not shared
		return
	}
	r.raw = append(r.raw, ln.text[:min(len(ln.text), max(maxBytes-len(r.raw), 0))]...)
}

// close cuts off the line end that ends the record.
func (r *record) close() {
	r.size -= r.end
	r.raw = r.raw[:min(len(r.raw), r.size)]
}

// group reads one record: a line, or with a begin expression all lines up to
// the next one it matches. Blank lines before a record are counted, not part
// of it. Where the input is silent (Pauses), the lines so far are a record. A record without an expression
// is valid until the next one is read.
func (l *lineReader) group(begin func([]byte) (bool, error), blank func([]byte) bool, blanks *int) (record, error) {
	var r record
	for {
		var buf []byte
		if begin == nil {
			buf = l.buf[:0]
		}
		ln, err := l.nextInto(buf)
		if begin == nil && err == nil {
			l.buf = ln.text[:0]
		}
		switch {
		case errors.Is(err, ErrPause) && r.lines == 0:
			continue
		case (errors.Is(err, io.EOF) || errors.Is(err, ErrPause)) && r.lines > 0:
			r.close()
			return r, nil
		case err != nil:
			return r, err
		case r.lines == 0 && blank(ln.text):
			*blanks++
			continue
		case r.lines > 0:
			begins, err := begin(chomp(ln.text))
			if err != nil {
				return r, err
			}
			if begins {
				l.unread(ln)
				r.close()
				return r, nil
			}
		}
		if r.add(ln, l.max); begin == nil {
			r.close()
			return r, nil
		}
	}
}

// emptyLine says that a line has nothing but its end; in formats where white
// space means nothing, blankLine also that.
func emptyLine(b []byte) bool { return len(chomp(b)) == 0 }
func blankLine(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }
