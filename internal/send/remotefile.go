package send

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/almanac-events/almanac/internal/intake"
)

// file sends one file, whose first line is number before+1, and returns how many lines
// it has. Where it is silent, what came so far is sent.
func (r *Remote) file(ctx context.Context, in *bufio.Reader, before int) (lines int, err error) {
	var head, chunk []byte // head is the first row of a CSV file, which each request needs
	begun, quotes := 0, 0  // lines of earlier requests; quotation marks in the chunk
	send := func() error {
		if len(chunk) == 0 {
			return nil
		}
		first := before + begun
		if len(head) > 0 {
			first--
		}
		body := append(bytes.Clone(head), chunk...)
		chunk, begun, quotes = chunk[:0], lines, 0
		return r.request(ctx, body, first)
	}
	var part []byte // of a line
	for {
		line, err := in.ReadBytes('\n')
		if line = append(part, line...); errors.Is(err, intake.ErrPause) {
			if part = line; len(part) == 0 && r.mayPause(quotes) {
				if err := send(); err != nil {
					return lines, err
				}
			}
			continue
		}
		part = nil
		if err != nil && !errors.Is(err, io.EOF) {
			return lines, err
		}
		if len(line) > 0 {
			if len(chunk)+len(line) > remoteMost {
				return lines, fmt.Errorf("line %d: a record has more than %d MiB, which no gateway takes", before+lines+1, remoteMost>>20)
			}
			full := lines-begun >= remoteLines || len(chunk)+len(line) > remoteBytes
			if full && r.mayCut(line, quotes) {
				if err := send(); err != nil {
					return lines, err
				}
			}
			lines++
			if r.Format == intake.FormatCSV && head == nil {
				head, begun = bytes.Clone(line), lines
			} else {
				chunk = append(chunk, line...)
				quotes += bytes.Count(line, []byte{'"'})
			}
		}
		if err != nil {
			return lines, send()
		}
	}
}

// mayCut reports whether a request may end before a line.
func (r *Remote) mayCut(line []byte, quotes int) bool {
	switch {
	case r.Format == formatDocument:
		return false
	case r.Format == intake.FormatCSV:
		return quotes%2 == 0 // not inside a cell that has a line end
	case r.Multiline != nil:
		return r.Multiline.Match(line)
	}
	return true
}

// mayPause reports whether a request may end where the input is silent.
func (r *Remote) mayPause(quotes int) bool {
	return r.Format != formatDocument && (r.Format != intake.FormatCSV || quotes%2 == 0)
}

// formatDocument is the format whose input is one document.
const formatDocument = "json"
