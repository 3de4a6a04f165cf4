package loki

import (
	"encoding/json"
	"fmt"

	"github.com/almanac-events/almanac/schemas/rawjson"
)

// push is the request as JSON. Values stay raw: encoding/json would replace bytes
// that are not UTF-8.
type push struct {
	Streams *[]struct {
		Stream json.RawMessage     `json:"stream"`
		Values [][]json.RawMessage `json:"values"`
	} `json:"streams"`
}

// DecodeJSON reads a push as JSON.
func DecodeJSON(body []byte, o Options) (Push, error) {
	var in push
	if err := json.Unmarshal(body, &in); err != nil {
		return Push{}, fmt.Errorf("%w: %w", ErrPush, err)
	}
	if in.Streams == nil {
		return Push{}, fmt.Errorf(`%w: it has no "streams"`, ErrPush)
	}
	p := Push{space: o.MaxBytes}
	for _, s := range *in.Streams {
		labels := present(s.Stream)
		for _, v := range s.Values {
			r, err := jsonEntry(v)
			if err != nil {
				p.refuse(err)
				continue
			}
			r.labels = labels
			if err := p.add(&o, &r); err != nil {
				return Push{}, err
			}
		}
	}
	return p, nil
}

// jsonEntry reads ["<nanoseconds>", "<line>", {metadata}]; the last may be absent.
func jsonEntry(v []json.RawMessage) (r record, err error) {
	if len(v) < 2 || len(v) > 3 {
		return r, fmt.Errorf("%w: it has %d values, expected a time, a line and optional metadata", ErrEntry, len(v))
	}
	if v[1] == nil || v[1][0] != '"' {
		return r, fmt.Errorf("%w: the line is not a string", ErrEntry)
	}
	if v[0] == nil {
		return r, fmt.Errorf("%w: the time is null", ErrEntry)
	}
	if r.at, err = nanoseconds(rawjson.Text(v[0])); err != nil {
		return r, err
	}
	r.line = rawjson.Text(v[1])
	if len(v) == 3 {
		r.metadata = present(v[2])
	}
	return r, nil
}

// present is an object that is not absent or null; else it is empty.
func present(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] == 'n' {
		return ""
	}
	return string(raw)
}
