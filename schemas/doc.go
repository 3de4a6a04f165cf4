// Package schemas holds the words every part of Almanac shares. They are the event and
// its limits, topics and their kinds, months and lanes. So are every name that lives
// outside the process, the headers of a frame, and the table of a topic.
//
// # Model
//
// An Event belongs to a Topic, a month (UTC, from the event's own time) and a
// lane (a hash of the topic's LaneBy fields). A Frame is many events of one
// topic, month and lane. It is one ClickHouse Native block in ClickHouse's own
// compressed framing. A frame's bytes never change after the producer encoded
// them: the stream keeps them, the router checks them, ClickHouse reads them.
//
// # Who is authoritative
//
// The month of an event is decided once, by the part that builds the frame, and
// stands in the subject. No part recomputes it. The router only compares. A frame's
// columns are those of the topic's schema version the frame was built with
// (Topic.FrameColumns).
//
// # Failures
//
// Every refusal is one of the errors of errors.go, which errors.Is finds, with
// the offending value and the limit in the text. Nothing here does I/O, reads
// the clock or starts a goroutine. Of Almanac's packages it imports
// those of schemas alone.
package schemas
