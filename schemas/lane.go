package schemas

import (
	"slices"
)

// FNV-1a 32-bit parameters (Fowler, Noll, Vo), as hash/fnv has them.
const (
	fnvOffset32 = 2166136261
	fnvPrime32  = 16777619
)

// LaneHash is the running FNV-1a 32 hash of a lane key. Fields are added
// without a separator, as NATS's {{partition(n,…)}} joins its tokens, so the
// server and every client compute the same lane.
type LaneHash uint32

// NewLaneHash starts a key.
func NewLaneHash() LaneHash { return fnvOffset32 }

// Add appends a field to the key.
func (h LaneHash) Add(s string) LaneHash {
	for i := 0; i < len(s); i++ {
		h = (h ^ LaneHash(s[i])) * fnvPrime32
	}
	return h
}

// Lane is the slice of a topic-month the key belongs to, 0 to lanes-1.
func (h LaneHash) Lane(lanes int) int { return int(uint32(h) % uint32(lanes)) }

// addLabels adds all attributes without a column to the key. Their order does not matter:
// it adds the sum of each one's own hash.
func (t *Topic) addLabels(h LaneHash, e *Event) LaneHash {
	var sum uint32
	var buf [64]byte
	for i := range e.Attrs {
		a := &e.Attrs[i]
		if a.Key == AttrInvalidUTF8 || slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Takes(a.Key) }) {
			continue // a frame gets the mark after its event was given a lane
		}
		one := NewLaneHash().Add(a.Key).Add("=")
		if a.kind == KindString {
			one = one.Add(a.str)
		} else {
			for _, c := range a.AppendText(buf[:0]) {
				one = (one ^ LaneHash(c)) * fnvPrime32
			}
		}
		sum += uint32(one)
	}
	for shift := 0; shift < 32; shift += 8 {
		h = (h ^ LaneHash(sum>>shift&0xff)) * fnvPrime32
	}
	return h
}

// text is a field of the event by its column name, for lane keys.
func (e *Event) text(col string) string {
	switch col {
	case ColUserID:
		return e.UserID
	case ColService:
		return e.Service
	case ColType:
		return e.Type
	case ColTraceID:
		return e.TraceID
	case ColLevel:
		return e.Level
	case ColSpanID:
		return e.SpanID
	case ColMessage:
		return e.Message
	}
	for i := range e.Attrs {
		if e.Attrs[i].Key == col && e.Attrs[i].kind == KindString {
			return e.Attrs[i].str
		}
	}
	return ""
}
