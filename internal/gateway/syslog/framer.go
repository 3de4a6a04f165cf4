package syslog

import (
	"bufio"
	"errors"
	"io"

	"github.com/almanac-events/almanac/schemas"
)

// MaxLineBytes bounds a message; what exceeds it is read and not kept.
const MaxLineBytes = schemas.MaxEventBytes

// maxCountDigits bounds the count before a message: at most 9,999,999 bytes are read and
// not kept.
const maxCountDigits = 7

// Frame is one message.
type Frame struct {
	Line []byte
	Cut  int // bytes beyond MaxLineBytes that were not kept
}

// Framer cuts a stream into messages.
type Framer struct {
	r    *bufio.Reader
	line []byte
	// begins hears that the next message begins, with what was read of it already; nil: nothing does.
	begins func(read []byte)
}

// NewFramer reads messages from r.
func NewFramer(r io.Reader) *Framer { return &Framer{r: bufio.NewReaderSize(r, framerBytes)} }

// framerBytes is several usual messages; each connection has such a buffer.
const framerBytes = 8 << 10

// Next returns the next message, which is valid until the next call. The error is the
// stream's: io.EOF after the last message, io.ErrUnexpectedEOF within one that had a
// count. With another error the frame is what came of the message that it cut off. A
// last message without a newline is whole.
func (f *Framer) Next() (Frame, error) {
	if cap(f.line) > framerBytes {
		f.line = nil // a long message is rare
	}
	for {
		f.line = f.line[:0]
		if f.begins != nil {
			read, _ := f.r.Peek(f.r.Buffered()) // which is there
			f.begins(read)
		}
		n, err := f.count()
		if err != nil {
			return Frame{}, err
		}
		var frame Frame
		if n > 0 {
			frame, err = f.counted(n)
		} else {
			frame, err = f.newline()
		}
		if err != nil || len(trim(frame.Line)) > 0 {
			return frame, err
		}
	}
}

// count reads "<digits> " where a priority follows, and returns the number; 0 where
// the message has no count.
func (f *Framer) count() (int, error) {
	if first, err := f.r.Peek(1); err != nil || first[0] < '1' || first[0] > '9' {
		return 0, err
	}
	n := 0
	for i := range maxCountDigits + 1 {
		b, err := f.r.Peek(i + 2)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return 0, err
		}
		switch c := b[i]; {
		case c >= '0' && c <= '9' && i < maxCountDigits:
			n = 10*n + int(c-'0')
		case c == ' ' && i > 0 && b[i+1] == '<':
			_, err := f.r.Discard(i + 1)
			return n, err
		default:
			return 0, nil
		}
	}
	return 0, nil
}

func (f *Framer) counted(n int) (Frame, error) {
	kept := min(n, MaxLineBytes)
	for len(f.line) < kept { // grows with what comes, not with what was announced
		if _, err := f.r.Peek(1); err != nil {
			return Frame{Line: f.line}, unexpected(err)
		}
		b, err := f.r.Peek(min(f.r.Buffered(), kept-len(f.line)))
		if err != nil {
			return Frame{Line: f.line}, unexpected(err)
		}
		f.line = append(f.line, b...)
		if _, err := f.r.Discard(len(b)); err != nil {
			return Frame{Line: f.line}, unexpected(err)
		}
	}
	if _, err := f.r.Discard(n - kept); err != nil {
		return Frame{Line: f.line}, unexpected(err)
	}
	return Frame{f.line, n - kept}, nil
}

func (f *Framer) newline() (Frame, error) {
	size := 0
	for {
		chunk, err := f.r.ReadSlice('\n')
		if n := len(chunk); n > 0 && chunk[n-1] == '\n' {
			chunk = chunk[:n-1]
		}
		size += len(chunk)
		f.line = append(f.line, chunk[:min(len(chunk), MaxLineBytes-len(f.line))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && size > 0:
			err = nil
		}
		return Frame{f.line, size - len(f.line)}, err
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
