package schemas

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// This file holds the names of the fronts: DOCS and TIMERS, in which each subject is
// one key and its last message the key's record.

// Headers of a record. A message of a front without HeaderOp is not a record.
const (
	HeaderOp         = "Almanac-Op"          // what happened: OpStored and so on
	HeaderVersion    = "Almanac-Version"     // documents: 1, 2, 3 … of the document
	HeaderKeyCreated = "Almanac-Key-Created" // unix ns
	HeaderChanged    = "Almanac-Changed"     // unix ns; grows strictly from record to record of a key
	HeaderPath       = "Almanac-Path"        // documents: a/b
	HeaderBy         = "Almanac-By"          // who wrote it, as the writer says
	HeaderUser       = "Almanac-User"        // whose data it is, for erasure
	HeaderNonce      = "Almanac-Nonce"       // 16 hex digits of the writing call, by which it knows its own

	// HeaderStub marks a record whose body was taken out of the front because its row
	// is stored; its value is the row's place (FrontPlace).
	HeaderStub = "Almanac-Stub"
	// HeaderRefresh marks the same record put again, to free the older ones of its key:
	// it is not an event. Its value is the row's place.
	HeaderRefresh = "Almanac-Refresh"
	// HeaderLock names a lock by the sequence of its first message, from the second one on.
	HeaderLock = "Almanac-Lock"
)

// Headers of timers' records.
const (
	HeaderLife     = "Almanac-Life"     // UUID of the creation
	HeaderRevision = "Almanac-Revision" // 1, 2, 3 … of the timer's life
	HeaderAttempt  = "Almanac-Attempt"
	HeaderDue      = "Almanac-Due" // unix ns
	HeaderState    = "Almanac-State"
	HeaderOwner    = "Almanac-Owner"    // who claimed it
	HeaderClaim    = "Almanac-Claim"    // which claim
	HeaderSpecSeq  = "Almanac-Spec-Seq" // sequence of the record that has the spec
)

// Ops of documents.
const (
	OpStored  = "stored"
	OpUpdated = "updated"
	OpRemoved = "removed"
)

// Ops of locks.
const (
	OpLocked   = "locked"
	OpReleased = "released"
)

// Subjects of the fronts. Their topic is a token (FrontTopic): each topic that a name had has its own, so that what
// was written for one that was removed is under no subject of the next, however late it comes.

// FrontTopic is a topic's token in subjects of fronts: its name, and where that was another topic's before, ~ and the schema version
// that it began with.
func FrontTopic(name string, first int) string {
	if first == 0 {
		return name
	}
	return name + "~" + strconv.Itoa(first)
}

// InFronts is the topic's token in subjects of fronts.
func (t *Topic) InFronts() string { return FrontTopic(t.Name, t.First) }

// ParseFrontTopic splits a token of FrontTopic.
func ParseFrontTopic(token string) (name string, first int, err error) {
	name, text, again := strings.Cut(token, "~")
	if !again {
		return name, 0, nil
	}
	if first, err = strconv.Atoi(text); err != nil || first < 1 || FrontTopic(name, first) != token {
		return token, 0, fmt.Errorf("%w: %q does not name a topic of a front", ErrSubject, token)
	}
	return name, first, nil
}

// DocSubject is docs.<topic>.<lane>.<id>, of a topic's token.
func DocSubject(topic string, lane int, id string) string {
	return tokenDocs + "." + topic + "." + strconv.Itoa(lane) + "." + id
}

// DocLockSubject is doclocks.<topic>.<lane>.<id>.
func DocLockSubject(topic string, lane int, id string) string {
	return tokenLocks + "." + topic + "." + strconv.Itoa(lane) + "." + id
}

// DocLockTopicFilter selects the locks of a topic's documents.
func DocLockTopicFilter(topic string) string { return tokenLocks + "." + topic + ".*.*" }

// DocLockID is the id of doclocks.<topic>.<lane>.<id>.
func DocLockID(subject string) (id string, err error) {
	t, err := splitSubject(subject, tokenLocks, 4, "<topic>.<lane>.<id>")
	return t[3], err
}

// DocLaneFilter selects the records of one lane. Topic and lane are tokens as they stand
// in subjects.
func DocLaneFilter(topic, lane string) string { return tokenDocs + "." + topic + "." + lane + ".*" }

// DocsFilters select all that DOCS has of a topic: its documents and their locks.
func DocsFilters(topic string) []string {
	return []string{DocTopicFilter(topic), DocLockTopicFilter(topic)}
}

// DocTopicFilter selects the records of a topic's documents.
func DocTopicFilter(topic string) string { return tokenDocs + "." + topic + ".*.*" }

// DocTokens splits docs.<topic>.<lane>.<id>.
func DocTokens(subject string) (topic, lane, id string, err error) {
	t, err := splitSubject(subject, tokenDocs, 4, "<topic>.<lane>.<id>")
	return t[1], t[2], t[3], err
}

// TimerSubject is timers.<topic>.<lane>.<group>.<slot>.<id>, of a topic's token.
func TimerSubject(topic string, lane int, group string, slot int, id string) string {
	return strings.Join([]string{tokenTimers, topic, strconv.Itoa(lane), group, strconv.Itoa(slot), id}, ".")
}

// TimerLaneFilter selects the records of one lane.
func TimerLaneFilter(topic, lane string) string {
	return tokenTimers + "." + topic + "." + lane + ".*.*.*"
}

// AnyTopic, in the place of a topic, makes a filter of the subjects of all topics.
const AnyTopic = "*"

// TimerTopicFilter selects the records of a topic's timers.
func TimerTopicFilter(topic string) string { return tokenTimers + "." + topic + ".*.*.*.*" }

// TimerTokens splits timers.<topic>.<lane>.<group>.<slot>.<id>.
func TimerTokens(subject string) (topic, lane, group, slot, id string, err error) {
	t, err := splitSubject(subject, tokenTimers, 6, "<topic>.<lane>.<group>.<slot>.<id>")
	return t[1], t[2], t[3], t[4], t[5], err
}

// FrontBlankSubject is where a topic's front is moved on, by blanks: no lane reads it.
func FrontBlankSubject(front, topic string) string {
	const lane = "repair"
	if front == StreamTimers {
		return strings.Join([]string{tokenTimers, topic, lane, "-", "-", "-"}, ".")
	}
	return DocLockSubject(topic, 0, "~"+lane) // no document has such an id, and so no lock
}

// SourceFilter selects the messages of a lane of the topic in a front, or in EVENTS where front is empty.
func (t *Topic) SourceFilter(front, lane string) string {
	switch front {
	case StreamDocs:
		return DocLaneFilter(t.InFronts(), lane)
	case StreamTimers:
		return TimerLaneFilter(t.InFronts(), lane)
	}
	return LaneFilter(t.Name, lane)
}

// SourceTopicFilter selects the messages of the topic in a front, or in EVENTS where front is empty.
func (t *Topic) SourceTopicFilter(front string) string {
	if front == "" {
		return TopicFilter(t.Name)
	}
	return FrontTopicFilter(front, t.InFronts())
}

// FrontTopicFilter selects the messages of a topic (Topic.InFronts, or AnyTopic) in a front.
func FrontTopicFilter(front, topic string) string {
	switch front {
	case StreamDocs:
		return DocTopicFilter(topic)
	case StreamTimers:
		return TimerTopicFilter(topic)
	}
	return ""
}

// SourceLane is the lane token of a subject of a front, or of EVENTS where front is empty.
func SourceLane(front, subject string) (lane string, ok bool) {
	var err error
	switch front {
	case StreamDocs:
		_, lane, _, err = DocTokens(subject)
	case StreamTimers:
		_, lane, _, _, _, err = TimerTokens(subject)
	default:
		_, _, lane, err = EventsTokens(subject)
	}
	return lane, err == nil
}

// SourceTopic is the topic token of a subject of a front, or of EVENTS.
func SourceTopic(subject string) string {
	_, rest, _ := strings.Cut(subject, ".")
	topic, _, _ := strings.Cut(rest, ".")
	return topic
}

// OfFront reports whether a subject is of a front, well-formed or not.
func OfFront(subject string) bool {
	first, _, _ := strings.Cut(subject, ".")
	return first == tokenDocs || first == tokenTimers
}

// GroupKey holds a timer group.
func GroupKey(topic, group string) string { return keyGroups + "." + topic + "." + group }

// GroupKeys selects the groups of a topic.
func GroupKeys(topic string) string { return keyGroups + "." + topic + ".*" }

// AllGroups selects the groups of every topic.
const AllGroups = keyGroups + ".*.*"

// FrontPlace is where the row of a record is stored.
type FrontPlace struct {
	Month Month
	Shard Shard
	Seq   uint64 // of the record in its front
}

// String is the form of HeaderStub and HeaderRefresh: <YYYY-MM>.<shard>.<seq>.
func (p FrontPlace) String() string {
	return p.Month.String() + "." + p.Shard.String() + "." + strconv.FormatUint(p.Seq, 10)
}

// ParseFrontPlace reads the form that String gives.
func ParseFrontPlace(s string) (p FrontPlace, err error) {
	t := strings.Split(s, ".")
	if len(t) != 3 {
		return p, fmt.Errorf("%w: %q is not <YYYY-MM>.<shard>.<seq>", ErrRecord, s)
	}
	if p.Month, err = ParseMonth(t[0]); err != nil {
		return FrontPlace{}, err
	}
	if p.Shard, err = ParseShard(t[1]); err != nil {
		return FrontPlace{}, err
	}
	if p.Seq, err = strconv.ParseUint(t[2], 10, 64); err != nil {
		return FrontPlace{}, fmt.Errorf("%w: %q has no sequence", ErrRecord, s)
	}
	return p, nil
}

// IsStub reports whether a message of a front stands in for a record whose body is only
// archived. One with a payload never does, whatever it claims.
func IsStub(h nats.Header, size int) bool {
	_, ok := h[HeaderStub]
	return ok && size == 0
}

// Replaces reports whether a message of a front took the place of what its subject had. Of Almanac's own that are stubs,
// refreshes and locks.
func Replaces(h nats.Header) bool { return h.Get(jetstream.MsgRollup) != "" }

// IsEvent reports whether a message of a front is an event: not a stub, not a refresh,
// not a blank.
func IsEvent(h nats.Header, size int) bool {
	_, refresh := h[HeaderRefresh]
	_, blank := h[HeaderBlank]
	return !IsStub(h, size) && !refresh && (!blank || size > 0)
}
