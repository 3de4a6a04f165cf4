package intake

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-logfmt/logfmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// logfmt makes an event of a line of key=value pairs.
func (d *Reader) logfmt(raw []byte) (schemas.Event, error) {
	// The decoder reads lines; its buffer must hold this one and its end.
	dec := logfmt.NewDecoderSize(bytes.NewReader(raw), len(raw)+2)
	var pairs []rawjson.Pair
	for dec.ScanRecord() {
		for dec.ScanKeyval() {
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
	e, err := d.keys.FromPairs(pairs)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrField, err)
	}
	return e, err
}
