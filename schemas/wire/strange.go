package wire

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/nats-io/nats.go"
)

// ReasonForeign is the reason of a dead letter that no part of Almanac published.
const ReasonForeign = "foreign"

// Foreign returns why a message of SHARDS or of a front is none that Almanac publishes there, or nil.
// It goes by subject and headers, and where data is not nil of a checkpoint by its payload too. inLane reports whether a lane of a front reads a subject:
// what is not a record there becomes a dead letter of its topic.
//
// A message that has the form of Almanac's own is not foreign, also where a client published it.
func Foreign(stream, subject string, h nats.Header, data []byte, inLane func(subject string) bool) error {
	if !schemas.Indexed(subject) {
		return fmt.Errorf("%w: %q has a byte that NATS does not index", schemas.ErrSubject, subject)
	}
	if stream != schemas.StreamShards {
		return foreignRecord(subject, h, inLane)
	}
	if topic, _, ok := schemas.RoutedTokens(subject); ok {
		if topic != schemas.NoTopic && schemas.ValidateTopicName(topic) != nil {
			return fmt.Errorf("%w: %q", schemas.ErrTopicName, topic)
		}
		if data == nil {
			data = []byte("{}") // the headers alone tell
		}
		_, err := checkpoint.Parse(h, data)
		return err
	}
	if topic, ok := schemas.DeadTopic(subject); ok {
		if topic != schemas.NoTopic && schemas.ValidateTopicName(topic) != nil {
			return fmt.Errorf("%w: %q", schemas.ErrTopicName, topic)
		}
		if h.Get(schemas.HeaderReason) == "" {
			return fmt.Errorf("a dead letter has its reason in %s", schemas.HeaderReason)
		}
		return nil
	}
	if topic, ok := schemas.GivenTopic(subject); ok {
		if schemas.ValidateTopicName(topic) != nil {
			return fmt.Errorf("%w: %q", schemas.ErrTopicName, topic)
		}
		return new(schemas.Given).TakeEncoded(data)
	}
	ref, err := schemas.ParseShardSubject(subject)
	if err == nil {
		err = schemas.ValidateTopicName(ref.Topic)
	}
	if err == nil {
		_, err = schemas.ParsePlaced(h)
	}
	return err
}

// recordHeaders are those of which each message of a front has one.
var recordHeaders = []string{schemas.HeaderOp, schemas.HeaderStub, schemas.HeaderRefresh, schemas.HeaderBlank, schemas.HeaderLock}

func foreignRecord(subject string, h nats.Header, inLane func(string) bool) error {
	for _, name := range recordHeaders {
		if _, ok := h[name]; ok {
			return nil
		}
	}
	if schemas.OfFront(subject) && inLane != nil && inLane(subject) {
		return nil
	}
	return fmt.Errorf("%w: it has no %s", schemas.ErrRecord, schemas.HeaderOp)
}
