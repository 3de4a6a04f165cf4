package documents

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/query/archived"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// lanesAtOnce is how many lanes of DOCS are read side by side, as many as a topic has unless it
// says otherwise: each waits for two answers, and may hold 8 MiB that are read ahead.
const lanesAtOnce = 4

// Reader reads the documents of any topic. It is safe for concurrent use.
type Reader struct {
	js  jetstream.JetStream
	reg *registry.Registry
	db  *tables.DB
	// ledger says what is being erased.
	ledger *registry.LedgerCache
}

// New makes a reader.
func New(reg *registry.Registry, db *tables.DB) *Reader {
	return &Reader{js: reg.JetStream(), reg: reg, db: db, ledger: registry.NewLedgerCache(reg)}
}

// Archived says up to which sequence of DOCS each lane of a topic is stored.
func (r *Reader) Archived(ctx context.Context, t *schemas.Topic) (map[int]uint64, error) {
	return archived.UpTo(ctx, r.js, r.reg, r.db, t)
}

// Body returns the archived record that a stub names.
func (r *Reader) Body(ctx context.Context, t *schemas.Topic, stub *document.Record) (*document.Record, error) {
	// Also what an erasure under way means: the caller asks Erased, and a row that is missing is an error.
	rows, err := r.selected(ctx, t, fmt.Sprintf("SELECT "+keyColumns+bodyColumns+" FROM "+schemas.QuotedTable(r.db.Database, t.Name)+" WHERE month = %d AND shard = %d AND path = {path:String} AND created = %s AND doc_id = {id:String} AND version = %d LIMIT 1",
		uint32(stub.Stub.Month), uint64(stub.Stub.Shard), nanos(stub.Created), stub.Version), map[string]string{"path": stub.Path, "id": stub.ID})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: version %d is not in shard %s, where it was stored; run `almanac verify %s`", ErrNoRow, stub.Version, schemas.PublicShardName(t.Name, stub.Stub.Month, stub.Stub.Shard), t.Name)
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
			if erased, err := r.Erased(ctx, t, rec); err != nil || erased {
				return true, err
			}
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

// fresh calls f with each record that DOCS has above what is archived, by one lane's at a time
// and in no order of lanes, and with whether an erasure under way means it. What is damaged
// there, or is not a record, is passed over. left reports that a record above what is
// archived has left DOCS: a read of ClickHouse that began before fresh may not have it.
func (r *Reader) fresh(ctx context.Context, t *schemas.Topic, upTo map[int]uint64, f func(rec *document.Record, erased bool)) (left bool, err error) {
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lanesAtOnce)
	for lane := range t.Lanes {
		g.Go(func() error {
			filter := schemas.SourceFilter(schemas.StreamDocs, t.Name, fmt.Sprint(lane))
			return streams.Gather(gctx, r.js, schemas.StreamDocs, filter, upTo[lane]+1, nil, func(msg *streams.Message) (bool, error) {
				rec := parse(msg)
				if rec == nil {
					return true, nil
				}
				if rec.Stub != nil {
					mu.Lock()
					defer mu.Unlock()
					left = left || rec.RowSeq() > upTo[lane]
					return true, nil
				}
				erased, err := r.Erased(gctx, t, rec)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					f(rec, erased)
				}
				return true, err
			})
		})
	}
	err = g.Wait()
	return left, err
}

// parse is a record, nil for what is none.
func parse(msg *streams.Message) *document.Record {
	rec, err := document.Parse(msg.Subject, msg.Sequence, msg.Header, msg.Data, len(msg.Data))
	if err != nil {
		return nil
	}
	return &rec
}
