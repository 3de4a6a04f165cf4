package documents

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts/archived"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Reader reads the documents of any topic. It is safe for concurrent use.
type Reader struct {
	js  jetstream.JetStream
	reg *registry.Registry
	db  *tables.DB
	// ledger says what is being erased.
	ledger *registry.LedgerCache

	mu    sync.Mutex
	known map[string]*known // by topic
	dense map[place]density // at most maxKnown
}

// New makes a reader.
func New(reg *registry.Registry, db *tables.DB) *Reader {
	reg = reg.WithThird(db)
	return &Reader{js: reg.JetStream(), reg: reg, db: db, ledger: registry.NewLedgerCache(reg), known: map[string]*known{}, dense: map[place]density{}}
}

// Archived says up to which sequence of DOCS each lane of a topic is stored.
func (r *Reader) Archived(ctx context.Context, t *schemas.Topic) (map[int]uint64, error) {
	return archived.UpTo(ctx, r.js, r.reg, r.db, t)
}

// Body returns the archived record that a stub names.
func (r *Reader) Body(ctx context.Context, t *schemas.Topic, stub *document.Record) (*document.Record, error) {
	// Also what an erasure under way means: the caller asks Erased, and a row that is missing is an error.
	rows, err := r.selected(ctx, t, fmt.Sprintf("SELECT "+keyColumns+bodyColumns+" FROM "+sql.QuotedTable(r.db.Database, t.Name)+" WHERE month = %d AND shard = %d AND path = {path:String} AND created = %s AND doc_id = {id:String} AND version = %d AND seq = %d LIMIT 1",
		uint32(stub.Stub.Month), uint64(stub.Stub.Shard), nanos(stub.Created), stub.Version, stub.RowSeq()), map[string]string{"path": stub.Path, "id": stub.ID})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: version %d is not in shard %s, where it was stored; run `almanac verify %s`", ErrNoRow, stub.Version, schemas.PublicShardName(t.Name, stub.Stub.Month, stub.Stub.Shard), t.Name)
	}
	return rows[0], nil
}

// Newest returns a stub of the newest version of a document that ClickHouse has, nil without one. ErrOnItsWay: it does
// not have all of the document's lane up to a message of DOCS.
func (r *Reader) Newest(ctx context.Context, t *schemas.Topic, id string, upTo uint64) (*document.Record, error) {
	stored, err := r.Archived(ctx, t)
	if err != nil {
		return nil, err
	}
	lane := document.Lane(t, id)
	if stored[lane] < upTo {
		return nil, fmt.Errorf("%w: lane %d is stored up to message %d, and not up to %d", ErrOnItsWay, lane, stored[lane], upTo)
	}
	rows, err := r.selected(ctx, t, "SELECT "+keyColumns+" FROM "+sql.QuotedTable(r.db.Database, t.Name)+" WHERE "+sql.InLane(lane)+" AND doc_id = {id:String} ORDER BY seq DESC LIMIT 1", map[string]string{"id": id})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// History returns all versions of a document, the oldest first.
func (r *Reader) History(ctx context.Context, t *schemas.Topic, id string) ([]*document.Record, error) {
	versions := map[uint64]*document.Record{} // by sequence: lives of an id may have one time of creation
	err := streams.Gather(ctx, r.js, schemas.StreamDocs, schemas.DocSubject(t.InFronts(), document.Lane(t, id), id), 1, nil, func(msg *streams.Message) (bool, error) {
		if rec := parse(msg); rec != nil && rec.Stub == nil {
			if erased, err := r.Erased(ctx, t, rec); err != nil || erased {
				return true, err
			}
			versions[rec.RowSeq()] = rec
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	stored, err := r.rows(ctx, t, false, sql.InLane(document.Lane(t, id))+" AND doc_id = {id:String}", "", map[string]string{"id": id})
	if err != nil {
		return nil, err
	}
	for _, rec := range stored {
		versions[rec.RowSeq()] = rec
	}
	out := make([]*document.Record, 0, len(versions))
	for _, rec := range versions {
		out = append(out, rec)
	}
	sortBy(out, func(a, b *document.Record) bool { return newer(b, a) })
	return out, nil
}

// parse is a record, nil for what is none.
func parse(msg *streams.Message) *document.Record {
	rec, err := document.Parse(msg.Subject, msg.Sequence, msg.Header, msg.Data, len(msg.Data))
	if err != nil {
		return nil
	}
	return &rec
}
