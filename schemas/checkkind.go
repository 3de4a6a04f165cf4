package schemas

import (
	"fmt"
	"math"
	"sync"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// plainTopics are topics of each kind that declare nothing of their own.
var plainTopics = sync.OnceValue(func() map[Kind]*Topic {
	topics := map[Kind]*Topic{}
	for _, kind := range kinds.All() {
		t := NewTopicOf(kind, "events")
		topics[kind] = &t
	}
	return topics
})

// CheckKind reports why no topic of a kind takes an event, or nil: the rules of the kind alone. Sizes, how far ahead
// its time lies, and what a topic declares, its producer checks. An event without a time is not older than one that it names.
func CheckKind(kind Kind, e *Event) error {
	topic := plainTopics()[kind]
	if topic == nil {
		return fmt.Errorf("%w: there is no kind %q", ErrWrongKind, kind)
	}
	tsNs := int64(math.MaxInt64)
	if !e.Time.IsZero() {
		var err error
		if tsNs, err = UnixNs(e.Time); err != nil {
			return err
		}
	}
	return topic.checkKind(e, tsNs)
}
