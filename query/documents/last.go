package documents

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/streams"
)

// Last is the last record of a document in DOCS, by its headers.
type Last struct {
	*document.Record
	Size int // of its payload
}

// LastRecords reads the last record of each of a topic's documents, some 300 bytes each, by
// id. What is not a record is passed over.
func LastRecords(ctx context.Context, js jetstream.JetStream, topic string) (map[string]Last, error) {
	last := map[string]Last{}
	_, err := streams.Headers(ctx, js, schemas.StreamDocs, schemas.DocTopicFilter(topic), 1, func(m *streams.Message) error {
		if r, err := document.Parse(m.Subject, m.Sequence, m.Header, nil, m.Size); err == nil {
			last[r.ID] = Last{&r, m.Size}
		}
		return nil
	})
	return last, err
}
