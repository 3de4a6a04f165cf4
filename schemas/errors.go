package schemas

import (
	"errors"
	"strings"
)

// ErrRequest: what was asked for cannot be answered or done as it is; the text says
// what to change. Nothing was read or changed.
var ErrRequest = errors.New("bad request")

// Text returns an error's text as people read it: without the words of ErrRequest, which
// say nothing that the rest does not.
func Text(err error) string { return strings.ReplaceAll(err.Error(), ErrRequest.Error()+": ", "") }

// Why an event is refused. Nothing of a refused event is stored; the caller is
// told (Publish) or the refusal is counted by cause (Log).
var (
	// ErrTimeZero: the event's time is the epoch, a clock that was never set.
	ErrTimeZero = errors.New("event time is zero")
	// ErrTimeTooOld: the event's time lies before 1970.
	ErrTimeTooOld = errors.New("event time lies before 1970")
	// ErrTimeTooFarAhead: the event's time lies more than MaxFuture ahead.
	ErrTimeTooFarAhead = errors.New("event time lies too far ahead")
	// ErrEventTooLarge: the event has more than MaxEventBytes.
	ErrEventTooLarge = errors.New("event too large")
	// ErrTooManyAttrs: the event has more than MaxAttrs attributes.
	ErrTooManyAttrs = errors.New("too many attributes")
	// ErrAttrName: an attribute's name is empty or too long.
	ErrAttrName = errors.New("bad attribute name")
	// ErrValue: a value breaks a rule of the topic's kind.
	ErrValue = errors.New("bad value")
	// ErrLabels: the attributes of a kind that has them sorted are not, or one comes twice.
	ErrLabels = errors.New("bad labels")
	// ErrID: a text is not a UUID.
	ErrID = errors.New("not a UUID")
)

// Why a name or a descriptor is refused.
var (
	// ErrTopicName: a topic's name breaks the rule [a-z][a-z0-9_]{0,62}, or is
	// reserved.
	ErrTopicName = errors.New("bad topic name")
	// ErrTopic: a topic's descriptor is not usable.
	ErrTopic = errors.New("bad topic")
	// ErrTopicChange: the change of a live topic cannot be made.
	ErrTopicChange = errors.New("unsupported topic change")
	// ErrUnknownTopic: the topic was never declared.
	ErrUnknownTopic = errors.New("unknown topic")
	// ErrWrongKind: what was asked for does not go with the topic's kind.
	ErrWrongKind = errors.New("wrong kind of topic")
	// ErrPrivacyKey: the key of a topic's hashes is missing or too short.
	ErrPrivacyKey = errors.New("bad privacy key")
	// ErrMonth: a text is not a month YYYY-MM with 01 to 12.
	ErrMonth = errors.New("bad month")
	// ErrSubject: a subject is not one of Almanac's.
	ErrSubject = errors.New("bad subject")
	// ErrShardName: a text is not a shard's name.
	ErrShardName = errors.New("bad shard name")
)

// Why a frame is refused. The router keeps a refused frame whole, as a dead
// letter with the error's text.
var (
	// ErrFrameHeaders: a frame's headers are missing or cannot be read.
	ErrFrameHeaders = errors.New("bad frame headers")
	// ErrFrameCorrupt: a frame's bytes fail their checksum or are cut short.
	ErrFrameCorrupt = errors.New("corrupt frame")
	// ErrFrameTooLarge: a frame is larger than its limits.
	ErrFrameTooLarge = errors.New("frame too large")
	// ErrFrameColumns: a frame's columns are not those of its schema version.
	ErrFrameColumns = errors.New("frame columns do not fit the topic")
	// ErrFrameLies: a frame's headers say something else than its rows.
	ErrFrameLies = errors.New("frame headers lie")
	// ErrFrameMonth: an event's time lies outside the month of the subject.
	ErrFrameMonth = errors.New("event outside the subject's month")
	// ErrLane: an event came by another lane than its identity has.
	ErrLane = errors.New("event in another lane than its own")
	// ErrSameID: more events of a frame, or lines of a message, have one id than a router takes.
	ErrSameID = errors.New("one id too often")
	// ErrPastRetention: the month is wholly older than its topic keeps events.
	ErrPastRetention = errors.New("past retention")
	// ErrFrameSchema: a frame names a schema version the topic does not have.
	ErrFrameSchema = errors.New("unknown schema version")
	// ErrNotJSON: a message without Almanac headers is not JSON.
	ErrNotJSON = errors.New("not a JSON object")
	// ErrRecord: a message of a front is not a record of its key.
	ErrRecord = errors.New("not a record")
	// ErrReplaced: what is not a record took the place of a key's records in a front.
	ErrReplaced = errors.New("it took the place of a record")
	// ErrJSONEvent: a JSON value is not an event.
	ErrJSONEvent = errors.New("bad JSON event")
)
