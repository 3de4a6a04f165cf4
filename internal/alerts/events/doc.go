// Package events is the events of alerts: a transition of an alert as an event of kind audit, and back.
//
// An event's request is the key of its transition, its resource the rule, its type the new state, and its time the instant. So a
// transition that is written again is the same event. The value of the group is an attribute, and the event's user where the
// rule groups by user_id: an erasure of the person takes it.
package events
