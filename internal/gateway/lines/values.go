package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/intake"
)

// values reads an array of objects, or objects one after the other. All are cut, and counted, before
// the first is decoded.
func values(body []byte, o intake.Options, each func(*Record) error) error {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	cuts, broken := cut(body)
	if len(cuts) > MaxEvents {
		return tooMany()
	}
	r := intake.NewReader(strings.NewReader(""), o)
	line, counted := 1, 0
	var rec Record // one for all: each may not keep it
	for _, c := range cuts {
		line += bytes.Count(body[counted:c.from], []byte("\n"))
		counted = c.from
		raw := body[c.from:c.to]
		rec = Record{Record: r.Value(oneLine(raw)), Element: c.element}
		if rec.Err != nil && !json.Valid(raw) { // so what follows may have been cut wrongly
			return brokenJSON(body, c)
		}
		rec.Line, rec.Lines = line, 1+bytes.Count(raw, []byte("\n"))
		withoutID(&rec)
		if err := each(&rec); err != nil {
			return err
		}
	}
	return broken
}

// oneLine is a value without line ends, as a line of NDJSON is.
func oneLine(raw []byte) []byte {
	var one bytes.Buffer
	if !bytes.ContainsAny(raw, "\r\n") || json.Compact(&one, raw) != nil {
		return raw
	}
	return one.Bytes()
}

// valueCut is where a value of a body is.
type valueCut struct {
	from, to int
	element  int // of the array, from 1; 0 where it is none
}

// cut finds the values of a body by brackets and quotes alone: the elements of an array that it begins
// with, and what follows one after the other. It stops above MaxEvents. The error says from where on the
// body is not JSON; what was cut before stays good.
func cut(body []byte) (cuts []valueCut, err error) {
	at := space(body, 0)
	array := at < len(body) && body[at] == '['
	if array {
		at = space(body, at+1)
	}
	for element := 1; len(cuts) <= MaxEvents; {
		switch {
		case at == len(body) && array:
			return cuts, malformedAt(body, at, errors.New("the array is not closed"))
		case at == len(body):
			return cuts, nil
		case array && body[at] == ']' && (element == 1 || body[last(body, at)] != ','):
			array, at = false, space(body, at+1)
			continue
		}
		n := length(body[at:])
		if n == 0 {
			return cuts, malformedAt(body, at, errors.New("a value was expected, or it is not closed"))
		}
		c := valueCut{from: at, to: at + n}
		at = space(body, at+n)
		if array {
			c.element = element
			element++
			switch {
			case at < len(body) && body[at] == ',':
				at = space(body, at+1)
			case at < len(body) && body[at] != ']':
				return append(cuts, c), malformedAt(body, at, fmt.Errorf("after element %d a comma or ] was expected", c.element))
			}
		}
		cuts = append(cuts, c)
	}
	return cuts, nil
}

// space returns the first place from at on that is not white space.
func space(body []byte, at int) int {
	for at < len(body) && (body[at] == ' ' || body[at] == '\t' || body[at] == '\n' || body[at] == '\r') {
		at++
	}
	return at
}

// last returns the last place before at that is not white space.
func last(body []byte, at int) int {
	return len(bytes.TrimRight(body[:at], " \t\r\n")) - 1
}

// length returns how many bytes the value has that b begins with; 0 where it does not end, or
// none begins.
func length(b []byte) int {
	switch b[0] {
	case '{', '[':
	case '"':
		return text(b)
	case ',', ']', '}', ':':
		return 0
	default: // a number or a word
		if n := bytes.IndexAny(b, " \t\r\n,]}"); n >= 0 {
			return n
		}
		return len(b)
	}
	depth := 0 // of both kinds of brackets: what does not pair is refused where the value is parsed
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := text(b[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// text returns how many bytes the text in quotes has that b begins with; 0 where it does not end.
func text(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return 0
}

// brokenJSON says where a value that was cut is not JSON.
func brokenJSON(body []byte, c valueCut) error {
	var any json.RawMessage
	err := json.Unmarshal(body[c.from:c.to], &any)
	at := c.from
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at += int(syntax.Offset)
	}
	if c.element > 0 {
		err = fmt.Errorf("element %d: %w", c.element, err)
	}
	return malformedAt(body, at, err)
}

func malformedAt(body []byte, at int, err error) error {
	at = min(at, len(body))
	return fmt.Errorf("%w: line %d, byte %d of the body: %w", errBody, 1+bytes.Count(body[:at], []byte("\n")), at, err)
}

// tooMany refuses a request with more events than one may have.
func tooMany() error {
	return request.Refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the request has more than %d events", MaxEvents), "send it as several requests")
}
