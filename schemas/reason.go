package schemas

import "errors"

// ReasonReplaced is the reason of a dead letter that took the place of what a key had in a front.
const ReasonReplaced = "replaced-record"

// Reason returns the one-word reason of a refusal, as dead letters and counters carry
// it, or "" when err is not a refusal.
func Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	return ""
}

// The first that matches is the word, so one that wraps another stands above it. An error that is
// here is a refusal everywhere: the router keeps a dead letter and goes on, any other ends the
// lane's run. ErrStaleSeq is package router's own. Single reasons matter to router.refusedFrame,
// to repair's rebuild, to deadletters.leaveOut and to usage.TooLate.
var reasons = []struct {
	err  error
	word string
}{
	{ErrFrameHeaders, "bad-headers"},
	{ErrFrameCorrupt, "corrupt"},
	{ErrFrameTooLarge, "frame-too-large"},
	{ErrFrameColumns, "bad-columns"},
	{ErrFrameLies, "headers-lie"},
	{ErrFrameMonth, "wrong-month"},
	{ErrLane, "wrong-lane"},
	{ErrSameID, "same-id"},
	{ErrPastRetention, "past-retention"},
	{ErrFrameSchema, "unknown-schema"},
	{ErrReplaced, ReasonReplaced},
	{ErrRecord, "not-a-record"},
	{ErrNotJSON, "not-json"},
	{ErrJSONEvent, "bad-json-event"},
	{ErrUnknownTopic, "unknown-topic"},
	{ErrWrongKind, "wrong-kind"},
	{ErrTopicName, "bad-topic-name"},
	{ErrMonth, "bad-month"},
	{ErrSubject, "bad-subject"},
	{ErrTimeZero, "time-zero"},
	{ErrTimeTooOld, "time-too-old"},
	{ErrTimeTooFarAhead, "time-too-far-ahead"},
	{ErrEventTooLarge, "event-too-large"},
	{ErrTooManyAttrs, "too-many-attributes"},
	{ErrAttrName, "bad-attribute-name"},
	{ErrValue, "bad-value"},
	{ErrLabels, "bad-labels"},
	{ErrID, "bad-id"},
}
