// Package loki takes what programs push to Loki: POST /loki/api/v1/push as JSON,
// or as protobuf in a snappy block.
//
// # Model
//
// A push has streams. A stream has labels and entries; an entry has a time, a line
// and, with newer clients, structured metadata. Each entry becomes one event.
// DecodeJSON and DecodeProtobuf are pure: they turn a body into events, in order, and never wait.
//
// Metadata, labels and line are one record, in that order. A line that is a JSON
// object is taken apart; any other line is the message. Names that stand for level, service,
// user, trace, span or message fill that column, the first that is there (paths in loki.go),
// and the others stay attributes. A label called message fills it only beside a line that is
// an object. Nothing fills the event's id.
//
// # Failures
//
// A body that is not a push is an error (ErrPush), and nothing of it is taken. An entry
// that cannot become an event is a Refusal, and the others are taken, as Loki does.
// Labels that do not parse are kept whole as the attribute loki.labels. A snappy
// block that says it is larger than the limit is refused before it is read
// (ErrTooLarge).
package loki
