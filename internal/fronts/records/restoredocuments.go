package records

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// restoreDocuments makes a stub of each document's newest version.
func restoreDocuments(_ context.Context, _ *tables.DB, t *schemas.Topic, lost []Lost, _ func() (int64, error)) ([]fronts.Record, error) {
	out := make([]fronts.Record, len(lost))
	for i := range lost {
		l := &lost[i]
		n := documentRow(&l.Row)
		d := document.Record{ID: n.ID, Path: n.Path, Op: n.Op, Version: n.Version, Created: n.Created, Changed: n.Changed, Stub: l.Place}
		h := d.Header()
		h[jetstream.MsgRollup] = []string{jetstream.MsgRollupSubject}
		out[i] = fronts.Record{Subject: l.Subject, Header: h, Expect: l.Expect, For: fronts.End}
	}
	return out, nil
}

// putDocumentAgain: DOCS was restored from an older copy, or lost its end, and the document was written before that was
// noticed: on top of an older version than ClickHouse has. What was written last is what was acknowledged last. So it
// becomes the version after the newest that ClickHouse has.
func putDocumentAgain(ctx context.Context, db *tables.DB, t *schemas.Topic, last *streams.Message, _ func(uint64) (*streams.Message, error), _ func() (int64, error)) (*fronts.Record, error) {
	was, err := document.Parse(last.Subject, last.Sequence, last.Header, last.Data, last.Size)
	if err != nil {
		return nil, err
	}
	lane, err := schemas.ParseLane(was.Lane)
	if err != nil {
		return nil, err
	}
	var newest *version
	err = newestVersions(ctx, db, t.Name, lane, []string{was.ID}, func(n *version) error {
		newest = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	next := againOf(was, newest)
	return &fronts.Record{Subject: last.Subject, Header: next.Header(), Data: last.Data}, nil
}

// againOf is a document's young record as it is put again, above its newest stored version, nil without one.
func againOf(r document.Record, newest *version) document.Record {
	r.Stub, r.Refresh = nil, nil
	if newest == nil {
		return r
	}
	r.Version = max(r.Version, newest.Version+1)
	if newest.Op == schemas.OpRemoved || r.Removed() {
		return r
	}
	if r.Created = newest.Created; r.Op == schemas.OpStored {
		r.Op = schemas.OpUpdated
	}
	return r
}
