package otlp

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// body is a request as protobuf, and as a text: texts of events are parts of that one, without
// a copy of each.
type body struct {
	raw  []byte
	text string
}

// wire is the part of a request that is being read.
type wire struct {
	of      *body
	at, end int
}

func (b *body) wire() wire { return wire{b, 0, len(b.raw)} }

// left is what was not read yet.
func (w *wire) left() []byte { return w.of.raw[w.at:w.end] }

func (w *wire) more() bool { return w.at < w.end }

// tag reads the number and the type of the next field.
func (w *wire) tag() (protowire.Number, protowire.Type, error) {
	if c := w.of.raw[w.at]; c >= 1<<3 && c < 1<<7 { // one byte, as for all fields that are known
		w.at++
		return protowire.Number(c >> 3), protowire.Type(c & 7), nil
	}
	number, kind, n := protowire.ConsumeTag(w.left())
	if n < 0 {
		return 0, 0, errNotProto
	}
	w.at += n
	return number, kind, nil
}

// pass passes over a field.
func (w *wire) pass(number protowire.Number, kind protowire.Type) error {
	n := protowire.ConsumeFieldValue(number, kind, w.left())
	if n < 0 {
		return errNotProto
	}
	w.at += n
	return nil
}

// message reads a field that holds bytes: a text, or a message.
func (w *wire) message(kind protowire.Type) (wire, error) {
	if kind != protowire.BytesType {
		return wire{}, wrongType(kind)
	}
	if c := int(w.of.raw[min(w.at, len(w.of.raw)-1)]); c < 1<<7 && w.at+1+c <= w.end { // most are short
		inner := wire{w.of, w.at + 1, w.at + 1 + c}
		w.at += 1 + c
		return inner, nil
	}
	v, n := protowire.ConsumeBytes(w.left())
	if n < 0 {
		return wire{}, errNotProto
	}
	inner := wire{w.of, w.at + n - len(v), w.at + n}
	w.at += n
	return inner, nil
}

// eachIn calls each with the fields of a number, which are messages.
func eachIn(w wire, of protowire.Number, each func(wire) error) error {
	for w.more() {
		number, kind, err := w.tag()
		switch {
		case err != nil:
		case number == of:
			err = readMessage(&w, kind, each)
		default:
			err = w.pass(number, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scopesOf is the number of the field that has the scopes of a resource.
func scopesOf(resource wire) protowire.Number {
	for resource.more() {
		number, kind, err := resource.tag()
		switch {
		case err != nil: // eachIn says so
			return resourceScopes
		case number == resourceScopes:
			return resourceScopes
		case resource.pass(number, kind) != nil:
			return resourceScopes
		}
	}
	return resourceOldScopes
}

// without is a message that eachIn read to its end, but for the fields of some numbers.
func without(w wire, but ...protowire.Number) (content []byte) {
	for w.more() {
		number, _, size := protowire.ConsumeField(w.left())
		if size < 0 {
			return nil // eachIn says so
		}
		if !slices.Contains(but, number) {
			content = append(content, w.left()[:size]...)
		}
		w.at += size
	}
	return content
}

// readMessage reads a field that is a message.
func readMessage(w *wire, kind protowire.Type, read func(wire) error) error {
	inner, err := w.message(kind)
	if err != nil {
		return err
	}
	return read(inner)
}

func (w *wire) text(kind protowire.Type) (string, error) {
	inner, err := w.message(kind)
	return w.of.text[inner.at:inner.end], err
}

// id reads one of as many bytes as into has, or none. bad says why it is not one; that of an earlier one stays.
func (w *wire) id(kind protowire.Type, into []byte, earlier error) (bad, err error) {
	inner, err := w.message(kind)
	if err != nil {
		return earlier, err
	}
	id := inner.left()
	if len(id) != 0 && len(id) != len(into) {
		return fmt.Errorf("%w: a trace or span id of %d bytes, it must have %d", ErrID, len(id), len(into)), nil
	}
	clear(into)
	copy(into, id)
	return earlier, nil
}

func (w *wire) varint(kind protowire.Type) (uint64, error) {
	if kind != protowire.VarintType {
		return 0, wrongType(kind)
	}
	v, n := protowire.ConsumeVarint(w.left())
	if n < 0 {
		return 0, errNotProto
	}
	w.at += n
	return v, nil
}

func (w *wire) fixed64(kind protowire.Type) (uint64, error) {
	if kind != protowire.Fixed64Type {
		return 0, wrongType(kind)
	}
	v, n := protowire.ConsumeFixed64(w.left())
	if n < 0 {
		return 0, errNotProto
	}
	w.at += n
	return v, nil
}

func (w *wire) fixed32(kind protowire.Type) (uint32, error) {
	if kind != protowire.Fixed32Type {
		return 0, wrongType(kind)
	}
	v, n := protowire.ConsumeFixed32(w.left())
	if n < 0 {
		return 0, errNotProto
	}
	w.at += n
	return v, nil
}

func wrongType(kind protowire.Type) error { return fmt.Errorf("it has the wrong wire type %d", kind) }
