package schemas

import "github.com/almanac-events/almanac/schemas/kinds"

// LaneOf is the lane of an event of topic t at tsNs, as it will be stored: with the topic's privacy rules and defaults
// applied. Every door of Almanac asks it. The lane of a topic with an identity is of that alone (identityLane). Of
// others producerID is the key of events whose own key is empty.
func LaneOf(t *Topic, e *Event, tsNs int64, producerID string) int {
	if t.Lanes == 1 {
		return 0
	}
	if t.HasIdentity() {
		return t.identityLane(e, tsNs)
	}
	lane, ok := LaneByKey(t, e)
	if !ok {
		lane = NewLaneHash().Add(producerID).Lane(t.Lanes)
	}
	return lane
}

// LaneByKey is the lane of an event of topic t by the event's own key; ok is false where that is empty.
func LaneByKey(t *Topic, e *Event) (lane int, ok bool) {
	h, empty := NewLaneHash(), true
	for _, f := range t.LaneBy {
		if f == kinds.LaneByAttributes {
			h, empty = t.addLabels(h, e), empty && len(e.Attrs) == 0
			continue
		}
		v := e.text(f)
		if other := t.otherName(f); v == "" && other != "" {
			v = e.text(other)
		}
		h, empty = h.Add(v), empty && v == ""
	}
	return h.Lane(t.Lanes), !empty
}
