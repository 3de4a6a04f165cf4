package intake

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/almanac-events/almanac/internal/patterns"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// text makes an event of a record whose message is the record itself.
func (d *Reader) text(raw []byte) (schemas.Event, error) {
	e, err := d.extract(raw)
	if err != nil {
		return e, fmt.Errorf("%w: %w", ErrField, err)
	}
	switch {
	case e.Message != "":
	case !d.opts.DropRaw:
		e.Message = string(raw)
	case d.find(d.opts.Extract, raw) == nil:
		return e, fmt.Errorf("%w: extract does not match, and the raw text is dropped", ErrSyntax)
	}
	if d.opts.UserRegex != nil {
		if m := d.find(d.opts.UserRegex, raw); m != nil && m[2] >= 0 {
			e.UserID = string(raw[m[2]:m[3]])
		}
	}
	if !e.Time.IsZero() {
		return e, nil
	}
	if d.opts.TsFormat != "" {
		e.Time, _ = d.clock.find(raw) // finish refuses a record without a time
	} else if d.opts.extractsTime() && !d.opts.Untimed {
		return e, fmt.Errorf("%w: extract does not match", ErrNoTime)
	}
	return e, nil
}

// extract makes an event of the named groups that took part in the match.
func (d *Reader) extract(raw []byte) (schemas.Event, error) {
	if d.opts.Extract == nil {
		return schemas.Event{}, nil
	}
	keys := d.keys
	keys.Times = nil
	var pairs []rawjson.Pair
	m := d.find(d.opts.Extract, raw)
	for i, name := range d.opts.Extract.SubexpNames() {
		if name == "" || m == nil || m[2*i] < 0 {
			continue
		}
		if len(keys.Times) == 0 && slices.Contains(d.keys.Times, name) {
			keys.Times = []string{name}
		}
		pairs = append(pairs, rawjson.Pair{Key: name, Value: string(raw[m[2*i]:m[2*i+1]])})
	}
	return keys.FromPairs(pairs)
}

// find is re.FindSubmatchIndex, until Options.Stop.
func (d *Reader) find(re *regexp.Regexp, text []byte) []int {
	found, err := patterns.Find(re, text, d.opts.Stop)
	if err != nil {
		d.stopped = err
	}
	return found
}

// begins reports whether a line begins a record.
func (d *Reader) begins(line []byte) (bool, error) {
	if d.opts.Stop != nil {
		if err := d.opts.Stop(); err != nil {
			return false, err
		}
	}
	begins := d.find(d.opts.Multiline, line) != nil
	return begins, d.stopped
}

// priority is what a syslog line may begin with.
var priority = regexp.MustCompile(`^<[0-9]{1,3}>`)

// places are where a text record may have its time.
func places(record []byte) [][]byte {
	first, _, _ := bytes.Cut(withoutMark(record), []byte("\n"))
	start := first[len(priority.Find(first)):]
	if _, inside, ok := bytes.Cut(first, []byte("[")); ok {
		return [][]byte{start, inside}
	}
	return [][]byte{start}
}
