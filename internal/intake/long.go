package intake

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
)

// Long is what becomes of a record whose event has more than schemas.MaxEventBytes.
type Long int

// What Fit does with it.
const (
	LongRefuse Long = iota // it stays as it is, and is refused by what takes it
	LongCut                // its longest texts are cut
	LongSplit              // several events share its longest text
)

const (
	// longSlack is left for what is added to an event on its way: the mark of invalid UTF-8, the digits of hashes.
	longSlack = 2 << 10
	// minPart is the least that a part has of a text that is split: 16 MiB are 4,096 such parts.
	minPart = 4 << 10
)

// Fit returns the events of a record: its own one, unless that is too long. The error is schemas.ErrEventTooLarge.
func (o *Options) Fit(rec *Record) ([]schemas.Event, error) {
	if o.Long == LongRefuse || rec.Event.Bytes() <= schemas.MaxEventBytes {
		return []schemas.Event{rec.Event}, nil
	}
	ruled := o.Topic != nil && len(o.Topic.PII) > 0
	marks := []schemas.Attr{schemas.Int64(schemas.AttrLongBytes, int64(len(rec.Raw)))}
	if !ruled {
		sum := sha256.Sum256(rec.Raw)
		marks = append(marks, schemas.String(schemas.AttrLongSHA256, hex.EncodeToString(sum[:])))
	}
	if o.Long == LongCut {
		return []schemas.Event{cut(rec.Event, marks, ruled)}, nil
	}
	return split(rec.Event, marks, ruled)
}

// cut halves the longest text of an event until it fits. Where there is no room for the marks the last attributes go.
func cut(e schemas.Event, marks []schemas.Attr, ruled bool) schemas.Event {
	kept := min(len(e.Attrs), schemas.MaxAttrs-len(marks)-1) // one for the mark of invalid UTF-8
	e.Attrs = append(slices.Clone(e.Attrs[:kept]), marks...)
	for over := e.Bytes() - (schemas.MaxEventBytes - longSlack); over > 0; over = e.Bytes() - (schemas.MaxEventBytes - longSlack) {
		at, text := longest(&e)
		if text == "" {
			break // names alone are too long: it is refused
		}
		if ruled && json.Valid([]byte(text)) {
			text = ""
		}
		setText(&e, at, clip(text, max(len(text)-over, len(text)/2)))
	}
	return e
}

// split makes several events of one: each has a part of the longest text, and all else.
func split(e schemas.Event, marks []schemas.Attr, ruled bool) ([]schemas.Event, error) {
	at, text := longest(&e)
	room := schemas.MaxEventBytes - longSlack - (e.Bytes() - len(text))
	switch {
	case len(e.Attrs)+len(marks)+3 > schemas.MaxAttrs: // two for the parts, one for the mark of invalid UTF-8
		return nil, fmt.Errorf("%w: it has %d attributes, which leaves no room for the marks of parts: --cut keeps the beginning of its texts", schemas.ErrEventTooLarge, len(e.Attrs))
	case room < minPart:
		return nil, fmt.Errorf("%w: it has %d bytes beside its longest text, which each part would have again: --cut keeps the beginning of its texts", schemas.ErrEventTooLarge, e.Bytes()-len(text))
	case ruled && json.Valid([]byte(text)):
		return nil, fmt.Errorf("%w: its longest text is JSON, which privacy rules could not reach into once it is split: --cut leaves it out", schemas.ErrEventTooLarge)
	}
	var parts []string
	for text != "" {
		part := clip(text, room)
		parts, text = append(parts, part), text[len(part):]
	}
	events := make([]schemas.Event, len(parts))
	for i, part := range parts {
		own := e
		own.Attrs = slices.Concat(e.Attrs, marks, []schemas.Attr{schemas.Int64(schemas.AttrPart, int64(i+1)), schemas.Int64(schemas.AttrParts, int64(len(parts)))})
		setText(&own, at, part)
		if i > 0 && !e.ID.IsZero() {
			own.ID = schemas.ID{}
			if !e.Time.IsZero() {
				own.ID = schemas.DerivedID(e.Time.UnixNano(), binary.BigEndian.Uint64(e.ID[:8])^binary.BigEndian.Uint64(e.ID[8:]), uint64(i))
			}
		}
		events[i] = own
	}
	return events, nil
}

// longest returns the longest text of an event and its place: that of an attribute, or -1 of the message.
func longest(e *schemas.Event) (at int, text string) {
	at, text = -1, e.Message
	for i := range e.Attrs {
		if a := &e.Attrs[i]; a.Kind() == schemas.KindString && len(a.Text()) > len(text) && a.Key != schemas.AttrLongSHA256 {
			at, text = i, a.Text()
		}
	}
	return at, text
}

// setText replaces the text at a place that longest returned.
func setText(e *schemas.Event, at int, text string) {
	if at < 0 {
		e.Message = text
		return
	}
	e.Attrs[at] = schemas.String(e.Attrs[at].Key, text)
}

// clip returns the first n bytes of a text, or up to three less where that would split a character.
func clip(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for back := 0; back < utf8.UTFMax && n-back > 0; back++ {
		if utf8.RuneStart(s[n-back]) {
			return s[:n-back]
		}
	}
	return s[:n]
}
