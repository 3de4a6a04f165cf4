package series

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
)

// read reads the points of each group, and returns the groups' keys.
func (r *Reader) read(ctx context.Context, s *selection, req *Request, a *Answer) (keys []string, err error) {
	body, err := once.Ask(ctx, r.db, s.statement(req, r.limits.points), s.params, settings)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	rows := rowsOf(body, req)
	var last []byte
	for n := int64(1); ; n++ {
		p, err := rows.next()
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return keys, fmt.Errorf("ClickHouse's answer: %w", err)
		}
		if n > r.limits.points {
			return keys, tooMuch("it gives more than %d points. Take fewer series, a longer period, or a shorter range", r.limits.points)
		}
		if len(keys) == 0 || string(rows.key) != string(last) {
			keys, a.Groups = append(keys, rows.keyText()), append(a.Groups, Group{})
			last = append(last[:0], rows.key...)
		}
		g := &a.Groups[len(a.Groups)-1]
		g.Points = append(g.Points, p)
	}
}

// rowReader reads the rows of a statement, which are in RowBinary: texts take ClickHouse and the
// reader some 3 of the 30 ms of a read.
type rowReader struct {
	in *bufio.Reader
	// grouped rows begin with a text, others with a series; whole ones may be distributions, and have all
	// that those have.
	grouped, whole bool
	key, rest      []byte
}

// What a row has after its key: its time and value, and of whole rows also whether it is a distribution, its count,
// sum, least, greatest, and m2.
const (
	valueBytes = 8 + 8
	wholeBytes = 8 + 1 + 8 + 8 + 4*8
	// maxKeyBytes bounds a group's key: labels of 64 KiB, escaped, have less.
	maxKeyBytes = 1 << 20
)

// isWhole reports whether the points of an answer are distributions, or may be.
func (r *Request) isWhole() bool {
	return r.Align == None || r.Reduce == Summary || r.Align == Summary && r.Reduce == None
}

func rowsOf(body io.Reader, req *Request) *rowReader {
	r := &rowReader{in: bufio.NewReaderSize(body, 64<<10), grouped: req.Reduce != None, whole: req.isWhole()}
	r.key, r.rest = make([]byte, len(Key{})), make([]byte, valueBytes)
	if r.whole {
		r.rest = make([]byte, wholeBytes)
	}
	return r
}

// next reads a row, whose key is then key. The error is io.EOF after the last one.
func (r *rowReader) next() (p Point, err error) {
	if r.grouped {
		n, err := binary.ReadUvarint(r.in)
		if err != nil {
			return p, err
		}
		if n > maxKeyBytes {
			return p, fmt.Errorf("a group's labels have %d bytes", n)
		}
		r.key = slices.Grow(r.key[:0], int(n))[:n]
	}
	if _, err := io.ReadFull(r.in, r.key); err != nil {
		if r.grouped {
			err = cut(err)
		}
		return p, err
	}
	if _, err := io.ReadFull(r.in, r.rest); err != nil {
		return p, cut(err)
	}
	number := func(at int) Number { return Number(math.Float64frombits(binary.LittleEndian.Uint64(r.rest[at:]))) }
	p.Time = time.Unix(0, int64(binary.LittleEndian.Uint64(r.rest))).UTC()
	switch {
	case !r.whole:
		v := number(8)
		p.Value = &v
	case r.rest[8] == 0:
		v := number(9)
		p.Value = &v
	default:
		d := &Distribution{Count: binary.LittleEndian.Uint64(r.rest[17:]), Sum: number(25), Min: number(33), Max: number(41), M2: number(49)}
		if d.Count > 0 {
			d.Mean = d.Sum / Number(d.Count)
		}
		p.Distribution = d
	}
	return p, nil
}

// cut makes of an end within a row that it is not the answer's.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// keyText is the key as find names it: a number, or the text.
func (r *rowReader) keyText() string {
	if r.grouped {
		return string(r.key)
	}
	var k Key
	for i := range k { // little-endian
		k[i] = r.key[len(k)-1-i]
	}
	return k.text()
}
