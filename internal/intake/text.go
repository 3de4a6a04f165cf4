package intake

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

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
	case !d.opts.Extract.Match(raw):
		return e, fmt.Errorf("%w: extract does not match, and the raw text is dropped", ErrSyntax)
	}
	if d.opts.UserRegex != nil {
		if m := d.opts.UserRegex.FindSubmatch(raw); m != nil {
			e.UserID = string(m[1])
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
	m := d.opts.Extract.FindSubmatchIndex(raw)
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
