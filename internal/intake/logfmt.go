package intake

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-logfmt/logfmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// logfmt makes an event of a line of key=value pairs. A line without any, such as one of a stack trace
// between them, is its message, whole.
func (d *Reader) logfmt(raw []byte) (schemas.Event, error) {
	if !bytes.ContainsRune(raw, '=') {
		return d.pairs([]rawjson.Pair{{Key: "message", Value: string(raw)}})
	}
	// The decoder reads lines; its buffer must hold this one and its end.
	dec := logfmt.NewDecoderSize(bytes.NewReader(raw), len(raw)+2)
	var pairs []rawjson.Pair
	for dec.ScanRecord() {
		for dec.ScanKeyval() {
			if v := dec.Value(); len(v) > 1 && v[0] == '\'' && v[len(v)-1] != '\'' {
				return schemas.Event{}, fmt.Errorf("%w: logfmt: the value of %s begins with ', and logfmt quotes with \"", ErrSyntax, dec.Key())
			}
			pairs = append(pairs, rawjson.Pair{Key: string(dec.Key()), Value: string(dec.Value())})
		}
	}
	if err := dec.Err(); err != nil {
		var at *logfmt.SyntaxError
		if errors.As(err, &at) {
			return schemas.Event{}, fmt.Errorf("%w: logfmt: %s at byte %d", ErrSyntax, at.Msg, at.Pos)
		}
		return schemas.Event{}, fmt.Errorf("%w: logfmt: %w", ErrSyntax, err)
	}
	return d.pairs(pairs)
}

func (d *Reader) pairs(pairs []rawjson.Pair) (schemas.Event, error) {
	e, err := d.keys.FromPairs(pairs)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrField, err)
	}
	return e, err
}
