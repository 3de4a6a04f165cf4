package schemas

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// HasIdentity reports whether events of the topic have an identity: two may be the same one, or one is newer than
// another. All events of an identity have one lane, for as long as the topic lives, so that copies and newest versions
// are looked for among the shards of one lane.
func (t *Topic) HasIdentity() bool { return t.HasOnce() || t.Front() != "" }

// laneKey is the lane key of a topic that does not give one.
func (t *Topic) laneKey() []string {
	if len(t.OnceBy) > 0 {
		return slices.Clone(t.OnceBy)
	}
	return slices.Clone(t.Spec().LaneBy)
}

// validateLaneKey refuses a lane key by which two events of one identity may have two lanes.
func (t *Topic) validateLaneKey() error {
	switch once := t.Once(); {
	case t.Front() != "" && !slices.Equal(t.LaneBy, t.Spec().LaneBy):
		return fmt.Errorf("lane_by cannot be given: lanes of kind %s are cut by %v", t.Kind, t.Spec().LaneBy)
	case len(once) == 0:
		return nil
	case len(t.LaneBy) == 0:
		return fmt.Errorf("lane_by is empty, and events are the same by %v: copies of one must have one lane. Name some of these columns, or leave lane_by out", once)
	default:
		for _, by := range t.LaneBy {
			if !slices.Contains(once, by) {
				return fmt.Errorf("lane_by names %q, and events are the same by %v: copies of one must have one lane. Name some of these columns, or leave lane_by out", by, once)
			}
		}
		return nil
	}
}

// CheckLane refuses an event that came by another lane than its identity has. NoLane: it was looked at before.
func (t *Topic) CheckLane(e *Event, tsNs int64, lane int) error {
	if lane == NoLane || t.Lanes == 1 || !t.HasIdentity() {
		return nil
	}
	if own := t.identityLane(e, tsNs); own != lane {
		return fmt.Errorf("%w: it came by lane %d, and all events with its %v have lane %d of topic %q", ErrLane, lane, t.LaneBy, own, t.Name)
	}
	return nil
}

// identityLane is the lane of an event by its identity: of the values that the columns of the lane key get, so that an
// event and the row that is read back of it have the same. A topic with an identity never asks who sent an event.
func (t *Topic) identityLane(e *Event, tsNs int64) int {
	switch t.Kind {
	case kinds.Document:
		return t.DocumentLane(e.text(kinds.ColDocID))
	case kinds.Timer:
		for i := range e.Attrs {
			if a := &e.Attrs[i]; a.Key == kinds.ColSlot {
				slot, _ := a.AsInt64()
				return int(slot) % t.Lanes
			}
		}
		return 0
	}
	h := NewLaneHash()
	for _, column := range t.LaneBy {
		h = t.addStored(h, e, tsNs, column)
	}
	return h.Lane(t.Lanes)
}

// addStored adds what a column of the event's row gets to a lane key: texts as they are, whole numbers, truths and
// decimals as text, times as nanoseconds. A type's zero, which stands for a missing value, adds nothing.
func (t *Topic) addStored(h LaneHash, e *Event, tsNs int64, column string) LaneHash {
	switch column {
	case kinds.LaneByAttributes:
		return t.addLabels(h, e)
	case ColTs:
		return h.Add(strconv.FormatInt(tsNs, 10))
	case ColID:
		return h.Add(e.ID.String())
	}
	i := t.field(column)
	if i < 0 {
		return h.Add(e.text(column))
	}
	f := &t.Fields[i]
	for k := range e.Attrs { // a frame's builder takes the first that fits and is not zero, too
		if a := &e.Attrs[k]; f.Takes(a.Key) {
			if next, set := h.addValue(f.Type, a); set {
				return next
			}
		}
	}
	return h
}

// addValue adds an attribute as a column of a type has it; set is false when it does not fit or is the type's zero.
func (h LaneHash) addValue(of FieldType, a *Attr) (next LaneHash, set bool) {
	var buf [64]byte
	var text []byte
	switch of {
	case TypeInt64:
		n, ok := a.AsInt64()
		if set = ok && n != 0; set {
			text = strconv.AppendInt(buf[:0], n, 10)
		}
	case TypeFloat64:
		n, ok := a.AsFloat64()
		if set = ok && math.Float64bits(n) != 0; set {
			text = strconv.AppendFloat(buf[:0], n, 'g', -1, 64)
		}
	case TypeBool:
		v, ok := a.AsBool()
		if set = ok && v; set {
			text = strconv.AppendBool(buf[:0], true)
		}
	case TypeTimestamp:
		n, ok := a.AsTime()
		if set = ok && n != 0; set {
			text = strconv.AppendInt(buf[:0], n, 10)
		}
	case TypeDecimal:
		d, ok := a.AsDecimal()
		if set = ok && !d.IsZero(); set {
			text = d.AppendText(buf[:0])
		}
	default:
		if of == TypeJSON && !a.Fits(TypeJSON) {
			return h, false
		}
		if a.kind == KindString {
			return h.Add(a.str), a.str != ""
		}
		text, set = a.AppendText(buf[:0]), true
	}
	for _, c := range text {
		h = (h ^ LaneHash(c)) * fnvPrime32
	}
	return h, set
}

// DocumentLane is the lane of a document's id.
func (t *Topic) DocumentLane(id string) int {
	if t.Documents.IDs == IDsGenerated {
		return seedLane(id, t.Lanes)
	}
	return NewLaneHash().Add(id).Lane(t.Lanes)
}

// seedLane returns the lane of a base64url id: the low bits of the first byte that its
// first two characters stand for. lanes is a power of two up to 256.
func seedLane(id string, lanes int) int {
	var b [2]byte
	_, _ = base64.RawURLEncoding.Decode(b[:], []byte((id + "AA")[:2]))
	return int(b[0]) & (lanes - 1)
}

// movesLanes reports whether a privacy rule changes a column by which the lanes of a topic with an identity are cut. A
// copy sent after the rule would have another lane, and copies are looked for in one, so Evolve refuses the rule.
func (t *Topic) movesLanes(rule *Private) bool {
	if t.Lanes == 1 || !t.HasOnce() {
		return false
	}
	key, attribute := RuleName(rule.Field)
	return slices.ContainsFunc(t.LaneBy, func(column string) bool {
		if column == kinds.LaneByAttributes {
			return attribute || !slices.Contains(reservedColumns, key)
		}
		return t.ruleChanges(column, key, attribute)
	})
}

// ruleChanges reports whether a rule for key changes a column.
func (t *Topic) ruleChanges(column, key string, attribute bool) bool {
	if i := t.field(column); i >= 0 {
		return column == key || lowerASCII(t.Fields[i].From) == key
	}
	return column == key && !attribute
}
