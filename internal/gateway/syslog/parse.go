package syslog

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/leodido/go-syslog/v4/rfc3164"
	"github.com/leodido/go-syslog/v4/rfc5424"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

var errNoPriority = errors.New("it does not begin with a priority from <0> to <191>")

// parse reads a message in the form that its beginning shows.
func (d *Decoder) parse(line []byte) (m message) {
	defer func() { // a fault of the library must not end the process: the message is kept whole
		if v := recover(); v != nil {
			m, *d = message{err: fmt.Errorf("the parser failed: %v", v)}, *NewDecoder()
		}
	}()
	rest, ok := afterPriority(line)
	switch {
	case !ok:
		return message{err: errNoPriority}
	case len(rest) > 1 && rest[0] >= '1' && rest[0] <= '9' && rest[1] == ' ':
		return d.parse5424(line)
	}
	return d.parse3164(line)
}

// maxPriority is facility local7 with severity debug.
const maxPriority = 191

// afterPriority returns what follows <0> to <191>.
func afterPriority(line []byte) (rest []byte, ok bool) {
	if len(line) < 3 || line[0] != '<' {
		return nil, false
	}
	end := bytes.IndexByte(line[:min(len(line), len("<191>"))], '>')
	if end < 2 {
		return nil, false
	}
	n := 0
	for _, c := range line[1:end] {
		if c < '0' || c > '9' {
			return nil, false
		}
		n = 10*n + int(c-'0')
	}
	return line[end+1:], n <= maxPriority
}

func (d *Decoder) parse5424(line []byte) (m message) {
	parsed, err := d.rfc5424.Parse(line)
	if got, ok := parsed.(*rfc5424.SyslogMessage); ok && got != nil {
		m.base = got.Base
	}
	if m.err = err; err == nil {
		var rest []byte
		if m.structured, rest, m.err = structured(line); m.err == nil {
			// The library takes a byte order mark for text.
			msg := string(bytes.TrimPrefix(rest, []byte("\ufeff")))
			m.base.Message = &msg
		}
	}
	return m
}

func (d *Decoder) parse3164(line []byte) (m message) {
	parsed, err := d.rfc3164.Parse(line)
	if got, ok := parsed.(*rfc3164.SyslogMessage); ok && got != nil {
		m.base = got.Base
	}
	m.err = err
	return m
}

// time returns the event's time, or the zero time where the message does not have
// one, or one that no event may have.
func (m *message) time(o *Options) (time.Time, error) {
	if m.base.Timestamp == nil {
		return time.Time{}, nil
	}
	t := *m.base.Timestamp
	if t.Year() == 0 {
		t = withYear(t, o)
	}
	ns, err := schemas.UnixNs(t)
	if err == nil {
		err = schemas.ValidateTime(ns, o.Now.UnixNano())
	}
	if err != nil {
		return time.Time{}, err
	}
	return t.UTC(), nil
}

// withYear gives a stamp the zone and a year (schemas.WithYear).
func withYear(t time.Time, o *Options) time.Time {
	zone := o.Location
	if zone == nil {
		zone = time.UTC
	}
	t, _ = schemas.WithYear(time.Date(4, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone), o.Now) // the year 4 has a 29 February
	return t
}

// structured cuts the structured data out of a message that parsed, as pairs in
// order, and returns the text after it. The library keeps one of two parameters of
// a name, so it is not asked.
func structured(line []byte) (pairs []rawjson.Pair, msg []byte, err error) {
	b := line
	for range 6 { // priority with version, time, host, application, process, message id
		_, after, ok := bytes.Cut(b, []byte{' '})
		if !ok {
			return nil, nil, errors.New("no structured data after the header")
		}
		b = after
	}
	if after, ok := bytes.CutPrefix(b, []byte{'-'}); ok {
		return nil, bytes.TrimPrefix(after, []byte{' '}), nil
	}
	for len(b) > 0 && b[0] == '[' {
		end := bytes.IndexAny(b, " ]")
		if end < 0 {
			break
		}
		id := string(b[1:end])
		if b[end] == ']' {
			pairs = append(pairs, rawjson.Pair{Key: id})
		}
		for b = b[end:]; len(b) > 0 && b[0] == ' '; {
			name, rest, ok := bytes.Cut(bytes.TrimLeft(b, " "), []byte(`="`))
			if !ok {
				return nil, nil, fmt.Errorf("structured data: a parameter of %q has no value", id)
			}
			var value []byte
			value, b, ok = quoted(rest)
			if !ok {
				return nil, nil, fmt.Errorf("structured data: a value of %q is not closed", id)
			}
			pairs = append(pairs, rawjson.Pair{Key: id + "." + string(name), Value: string(value)})
		}
		if len(b) == 0 || b[0] != ']' {
			return nil, nil, fmt.Errorf("structured data: %q is not closed", id)
		}
		b = b[1:]
	}
	return pairs, bytes.TrimPrefix(b, []byte{' '}), nil
}

// quoted reads a parameter's value up to its closing quote. A backslash escapes a
// quote, a backslash and a bracket, and means itself before all else.
func quoted(b []byte) (value, rest []byte, ok bool) {
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '"':
			return value, b[i+1:], true
		case b[i] == '\\' && i+1 < len(b) && bytes.IndexByte([]byte(`"\]`), b[i+1]) >= 0:
			i++
		}
		value = append(value, b[i])
	}
	return nil, nil, false
}
