// Package events is the events of the topic alerts: a transition of an alert as an event of kind audit, and back.
//
// An event's request is the key of its transition, and its resource the rule. Its type is the new state, and its time the instant.
// So a transition that is written again is the same event.
//
// The value of the group is an attribute. Where the rule groups by user_id it is the event's user too: an erasure takes it.
package events
