package series

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// Rows of each form are read as they are, and an answer that is cut anywhere within a row is not one that ends there.
func TestRows(t *testing.T) {
	t.Parallel()
	number := func(b []byte, numbers ...float64) []byte {
		for _, v := range numbers {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	series := func(n uint64, t int64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, n), 1), uint64(t))
	}
	grouped := func(key string, t int64) []byte {
		return binary.LittleEndian.AppendUint64(append(binary.AppendUvarint(nil, uint64(len(key))), key...), uint64(t))
	}
	whole := func(b []byte, dist byte, v float64, count uint64, rest ...float64) []byte {
		return number(binary.LittleEndian.AppendUint64(number(append(b, dist), v), count), rest...)
	}
	long := strings.Repeat("k", 300) // a length of two bytes
	for name, c := range map[string]struct {
		req  Request
		rows [][]byte
		want string
	}{
		"values":        {Request{Align: Mean, Reduce: None}, [][]byte{number(series(7, 1), 0.5), number(series(7, 2), math.Inf(1))}, "18446744073709551623 1 0.5; 18446744073709551623 2 +Inf; "},
		"groups":        {Request{Align: Mean, Reduce: Sum}, [][]byte{number(grouped(`["%"]`, 1), -1), number(grouped(long, 2), 2)}, `["%"] 1 -1; ` + long + " 2 2; "},
		"points":        {Request{Align: None, Reduce: None}, [][]byte{whole(series(1, 5), 0, 3, 1, 3, 3, 3, 0), whole(series(1, 6), 1, 0, 4, 8, 1, 3, 2)}, "18446744073709551617 5 3; 18446744073709551617 6 {4 2 8 1 3 2}; "},
		"summaries":     {Request{Align: Summary, Reduce: Summary}, [][]byte{whole(grouped("", 1), 1, 0, 0, 0, 0, 0, 0)}, " 1 {0 0 0 0 0 0}; "},
		"no row at all": {Request{Align: Count, Reduce: Count}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(answer []byte) (text string, err error) {
				rows := rowsOf(bytes.NewReader(answer), &c.req)
				for {
					p, err := rows.next()
					if err != nil {
						return text, err
					}
					if text += rows.keyText() + " " + fmt.Sprint(p.Time.UnixNano()) + " "; p.Distribution != nil {
						text += fmt.Sprint(*p.Distribution) + "; "
					} else {
						text += fmt.Sprint(*p.Value) + "; "
					}
				}
			}
			answer, ends := bytes.Join(c.rows, nil), map[int]bool{0: true}
			for i := range c.rows {
				ends[len(bytes.Join(c.rows[:i+1], nil))] = true
			}
			if got, err := read(answer); got != c.want || !errors.Is(err, io.EOF) {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
			for n := range answer {
				if _, err := read(answer[:n]); errors.Is(err, io.EOF) != ends[n] || !ends[n] && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("cut after %d bytes of %d: %v", n, len(answer), err)
				}
			}
		})
	}
	if _, err := rowsOf(bytes.NewReader(binary.AppendUvarint(nil, maxKeyBytes+1)), &Request{Align: Mean, Reduce: Mean}).next(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a key that is too long: %v", err)
	}
}
