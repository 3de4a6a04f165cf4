package records

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Documents: a document that is no longer hot leaves a stub, so that its id stays taken and compare-and-set needs no
// ClickHouse. A removed one leaves nothing.
var Documents = &Kind{
	Front: schemas.StreamDocs,
	Noun:  "document",
	Name:  func(subject string) string { return fmt.Sprintf("document %q", docID(subject)) },
	Parse: func(m *streams.Message) (*Record, error) {
		d, err := document.Parse(m.Subject, m.Sequence, m.Header, m.Data, m.Size)
		if err != nil {
			return nil, err
		}
		d.Body = nil
		return &Record{Seq: d.Seq, Row: d.RowSeq(), Changed: d.Changed, User: d.User, Size: m.Size, Over: d.Removed(), Stub: d.Stub, Refresh: d.Refresh, Unit: d.ID, of: &d}, nil
	},
	Event: func(t *schemas.Topic, m *streams.Message) (schemas.Event, error) {
		d, err := document.Parse(m.Subject, m.Sequence, m.Header, m.Data, m.Size)
		if err != nil {
			return schemas.Event{}, err
		}
		return d.RowEvent(t), nil
	},
	Whose: func(t *schemas.Topic, subject string) bool {
		_, lane, id, err := schemas.DocTokens(subject)
		return err == nil && lane == strconv.Itoa(document.Lane(t, id))
	},
	Newest:  newestDocuments,
	Meant:   meantDocuments,
	Compare: func(s *TopicState, l *Last, row *Row) string { return compareDocument(s, l, documentRow(row)) },
	Clear:   clearDocument,
	Fate: func(r *Record, row *Row) Fate {
		if r == nil && documentRow(row).Op != schemas.OpRemoved || r != nil && row.Seq > r.Row {
			return Restore
		}
		return Keep
	},
	Restored: "stubs", RestoredWhat: "stubs of documents",
	Restore: restoreDocuments,
	Again:   putDocumentAgain,
	Says: func(r *Record) string {
		d := r.of.(*document.Record)
		return fmt.Sprintf("%s %d %s %d %d", d.ID, d.Version, d.Op, d.Created, r.Size)
	},
	Column: fmt.Sprintf("concat(%s, ' ', toString(%s), ' ', %s, ' ', toString(toUnixTimestamp64Nano(%s)), ' ', toString(length(%s)))",
		kinds.ColDocID, kinds.ColVersion, kinds.ColOp, kinds.ColCreated, kinds.ColBody),
	HotFor: func(t *schemas.Topic) time.Duration { return t.Documents.HotFor },
	Stub: func(m *streams.Message, at schemas.FrontPlace) (fronts.Record, error) {
		return documentAgain(m, func(d *document.Record) {
			// Who wrote it and whose it is are in the row: nothing of them is left to erase.
			d.Stub, d.Refresh, d.Body, d.By, d.User = &at, nil, nil, "", ""
		})
	},
	Refresh: func(m *streams.Message, at schemas.FrontPlace) (fronts.Record, error) {
		return documentAgain(m, func(d *document.Record) { d.Refresh = &at })
	},
}

// documentAgain is a document's last record once more, changed, in place of all its records.
func documentAgain(m *streams.Message, change func(*document.Record)) (fronts.Record, error) {
	d, err := document.Parse(m.Subject, m.Sequence, m.Header, m.Data, m.Size)
	if err != nil {
		return fronts.Record{}, err
	}
	change(&d)
	h := d.Header()
	h[jetstream.MsgRollup] = []string{jetstream.MsgRollupSubject}
	return fronts.Record{Subject: m.Subject, Header: h, Data: d.Body, Expect: m.Sequence, For: fronts.End}, nil
}

// Document is the document of a record of Documents; nil without one.
func (r *Record) Document() *document.Record {
	if r == nil {
		return nil
	}
	return r.of.(*document.Record)
}

func docID(subject string) string {
	_, _, id, _ := schemas.DocTokens(subject)
	return id
}

func docIDs(subjects []string) []string {
	if subjects == nil {
		return nil
	}
	ids := make([]string, len(subjects))
	for i, subject := range subjects {
		ids[i] = docID(subject)
	}
	return ids
}

// unlessNoTable: nothing was stored yet.
func unlessNoTable(err error) error {
	if errors.Is(err, tables.ErrNoTable) {
		return nil
	}
	return err
}

func compareDocument(s *TopicState, l *Last, n *version) string {
	const front = schemas.StreamDocs
	r := l.Document()
	switch {
	case expiring(s.Shards, r, n):
		return Equal
	case r == nil && l.Replaced > 0:
		return fmt.Sprintf("message %d of %s is not a record, and took the place of what was there; run `almanac repair`, which puts back what ClickHouse has", l.Replaced, front)
	case r == nil && (n == nil || n.Op == schemas.OpRemoved):
		return Equal
	case r == nil:
		return fmt.Sprintf("%s does not have it, ClickHouse has version %d; run `almanac repair`", front, n.Version)
	}
	seq := r.RowSeq()
	lane, err := schemas.ParseLane(r.Lane)
	switch {
	case n != nil && n.Seq > seq:
		return fmt.Sprintf("%s is at version %d, ClickHouse has version %d; run `almanac repair`", front, r.Version, n.Version)
	case n != nil && n.Seq == seq:
		if n.Created != r.Created || n.Version != r.Version || n.Changed != r.Changed || n.Op != r.Op || r.Stub == nil && n.Size != l.Size || r.Stub != nil && (n.Month != r.Stub.Month || n.Shard != r.Stub.Shard) {
			return fmt.Sprintf("version %d is another one in ClickHouse than in %s", r.Version, front)
		}
		return Equal
	case r.Stub != nil:
		return fmt.Sprintf("its stub names version %d in shard %s, and ClickHouse does not have it", r.Version, schemas.ShardRef{Topic: r.Topic, Month: r.Stub.Month, ID: r.Stub.Shard})
	case err == nil && seq <= s.UpTo[lane]:
		return fmt.Sprintf("version %d, message %d of %s, is not in ClickHouse, though its lane is stored up to %d: it is among the dead letters, or lost", r.Version, seq, front, s.UpTo[lane])
	}
	return Waiting
}

// expiring reports whether retention is taking a document's newest version: its record goes before its
// row. r and n are what DOCS and ClickHouse have, nil for nothing.
func expiring(shards []registry.Shard, r *document.Record, n *version) bool {
	return slices.ContainsFunc(shards, func(s registry.Shard) bool {
		in := func(m schemas.Month, id schemas.Shard) bool { return s.Gone() && m == s.Month && id == s.ID }
		switch {
		case r == nil:
			return n != nil && in(n.Month, n.Shard)
		case n != nil:
			return false
		case r.Stub != nil:
			return in(r.Stub.Month, r.Stub.Shard)
		case r.Refresh != nil:
			return in(r.Refresh.Month, r.Refresh.Shard)
		}
		// A whole record does not say where its row is: it went since the record was read, or is lost.
		return s.Status == registry.Dropping && r.Lane == strconv.Itoa(s.ID.Lane()) && schemas.MonthOf(r.Changed) == s.Month && r.Changed <= s.MaxTs
	})
}
