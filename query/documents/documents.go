package documents

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/query/archived"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// Reader reads the documents of any topic. It is safe for concurrent use.
type Reader struct {
	js  jetstream.JetStream
	reg *registry.Registry
	db  *tables.DB
}

// New makes a reader.
func New(reg *registry.Registry, db *tables.DB) *Reader {
	return &Reader{js: reg.JetStream(), reg: reg, db: db}
}

// Archived says up to which sequence of DOCS each lane of a topic is stored.
func (r *Reader) Archived(ctx context.Context, t *schemas.Topic) (map[int]uint64, error) {
	return archived.UpTo(ctx, r.js, r.reg, r.db, t)
}

// Body returns the archived record that a stub names.
func (r *Reader) Body(ctx context.Context, t *schemas.Topic, stub *document.Record) (*document.Record, error) {
	rows, err := r.rows(ctx, t, false, fmt.Sprintf("month = %d AND shard = %d AND path = {path:String} AND created = %s AND doc_id = {id:String} AND version = %d",
		uint32(stub.Stub.Month), uint64(stub.Stub.Shard), nanos(stub.Created), stub.Version), "LIMIT 1", map[string]string{"path": stub.Path, "id": stub.ID})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("version %d is not in shard %s, where it was stored; run `almanac verify %s`", stub.Version, schemas.PublicShardName(t.Name, stub.Stub.Month, stub.Stub.Shard), t.Name)
	}
	return rows[0], nil
}

// History returns all versions of a document, the oldest first.
func (r *Reader) History(ctx context.Context, t *schemas.Topic, id string) ([]*document.Record, error) {
	type version struct {
		created int64
		n       uint64
	}
	versions := map[version]*document.Record{}
	err := streams.Gather(ctx, r.js, schemas.StreamDocs, schemas.DocSubject(t.Name, document.Lane(t, id), id), 1, nil, func(msg *streams.Message) (bool, error) {
		if rec := parse(msg); rec != nil && rec.Stub == nil {
			versions[version{rec.Created, rec.Version}] = rec
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	stored, err := r.rows(ctx, t, false, "doc_id = {id:String}", "", map[string]string{"id": id})
	if err != nil {
		return nil, err
	}
	for _, rec := range stored {
		versions[version{rec.Created, rec.Version}] = rec
	}
	out := make([]*document.Record, 0, len(versions))
	for _, rec := range versions {
		out = append(out, rec)
	}
	sortBy(out, func(a, b *document.Record) bool { return newer(b, a) })
	return out, nil
}

// fresh calls f with each record that DOCS has above what is archived. What is damaged
// there, or is no record, is passed over.
func (r *Reader) fresh(ctx context.Context, t *schemas.Topic, f func(*document.Record)) error {
	upTo, err := r.Archived(ctx, t)
	if err != nil {
		return err
	}
	for lane := range t.Lanes {
		err := streams.Gather(ctx, r.js, schemas.StreamDocs, schemas.SourceFilter(schemas.StreamDocs, t.Name, fmt.Sprint(lane)), upTo[lane]+1, nil, func(msg *streams.Message) (bool, error) {
			if rec := parse(msg); rec != nil && rec.Stub == nil {
				f(rec)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// parse is a record, nil for what is none.
func parse(msg *streams.Message) *document.Record {
	rec, err := document.Parse(msg.Subject, msg.Sequence, msg.Header, msg.Data, len(msg.Data))
	if err != nil {
		return nil
	}
	return &rec
}
