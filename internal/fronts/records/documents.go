package records

import (
	"context"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Last is the newest record of a document in DOCS, by its headers; nil where what is there is not a record.
type LastDocument struct {
	*document.Record
	Size int // of its payload
	// At is the sequence of the last message of the document's subject, record or not.
	At uint64
	// Replaced is the sequence of a message that is not a record and took the place of what was there; 0: none did. Of
	// one that has a record's headers its body alone can tell (Suspect).
	Replaced uint64
}

// Suspect reports whether it has a record's headers, and took the place of what was there as no record does.
func (l *LastDocument) Suspect() bool {
	return l.Record != nil && l.Replaced == l.Record.Seq && l.Stub == nil && l.Refresh == nil
}

// LastRecords reads the newest record of each of a topic's documents, some 300 bytes each, by
// id. What is not a record is passed over.
func LastDocuments(ctx context.Context, js jetstream.JetStream, t *schemas.Topic) (map[string]LastDocument, error) {
	last := map[string]LastDocument{}
	_, err := streams.Headers(ctx, js, schemas.StreamDocs, schemas.DocTopicFilter(t.Name), 1, func(m *streams.Message) error {
		_, lane, id, err := schemas.DocTokens(m.Subject)
		if err != nil || lane != strconv.Itoa(document.Lane(t, id)) {
			return nil
		}
		l := last[id]
		l.At = m.Sequence
		replaces := schemas.Replaces(m.Header)
		switch r, err := document.Parse(m.Subject, m.Sequence, m.Header, nil, m.Size); {
		case err == nil:
			l = LastDocument{Record: &r, Size: m.Size, At: m.Sequence}
			if replaces && r.Stub == nil && r.Refresh == nil {
				l.Replaced = m.Sequence
			}
		case replaces:
			l = LastDocument{At: m.Sequence, Replaced: m.Sequence}
		}
		last[id] = l
		return nil
	})
	return last, err
}
