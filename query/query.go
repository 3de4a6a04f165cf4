package query

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Reader reads one Almanac. It is safe for concurrent use.
type Reader struct {
	js     jetstream.JetStream
	reg    *registry.Registry
	db     *tables.DB
	ledger *registry.LedgerCache
	index  *recent.Index // of what is accepted and not stored yet

	servers servers
	known   known
}

// New prepares a reader for one verb: every query reads all it goes by itself, keeps nothing
// of the streams, and nothing runs in the background. See NewFollowing for a process that
// serves many.
func New(nc *nats.Conn, reg *registry.Registry, db *tables.DB) (*Reader, error) {
	index, err := recent.New(nc, reg, db)
	if err != nil {
		return nil, err
	}
	return open(nc, reg, db, index)
}

// NewFollowing prepares a reader for a process that serves many queries. It keeps what is
// not stored yet at hand from one query to the next. While Run runs, it reads ahead over
// a second connection, which must not be nc. Close releases what it holds; both
// connections stay the caller's.
func NewFollowing(nc, second *nats.Conn, reg *registry.Registry, db *tables.DB) (*Reader, error) {
	index, err := recent.NewFollowing(nc, second, reg, db)
	if err != nil {
		return nil, err
	}
	return open(nc, reg, db, index)
}

// open looks the two streams up.
func open(nc *nats.Conn, reg *registry.Registry, db *tables.DB, index *recent.Index) (*Reader, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	for _, stream := range []string{schemas.StreamEvents, schemas.StreamShards} {
		if _, err := streams.Open(ctx, js, stream); err != nil {
			return nil, fmt.Errorf("query: stream %s: %w", stream, err)
		}
	}
	reg = reg.WithThird(db)
	return &Reader{
		js: js, reg: reg, db: db, ledger: registry.NewLedgerCache(reg), index: index,
		known: known{heads: map[string]map[schemas.Shard]uint64{}, waits: map[schemas.ShardRef]waiting{}, last: map[string]*LagReport{}},
	}, nil
}

// Run reads ahead of queries, for topics that were asked about in the last seconds, until
// ctx ends. Without it queries read all they need themselves. A reader by New has nothing
// to run: Run waits for ctx.
func (r *Reader) Run(ctx context.Context) error { return r.index.Run(ctx) }

// Close releases what the reader holds. Queries under way go on, and read again what they
// need.
func (r *Reader) Close() { r.index.Close() }

// Registry returns the registry that the reader goes by, for reads of other packages.
func (r *Reader) Registry() *registry.Registry { return r.reg }

// DB returns the reader's ClickHouse, for reads of other packages.
func (r *Reader) DB() *tables.DB { return r.db }

// HeadStaleness is how long a reader may go by the head it saw of a shard.
const HeadStaleness = recent.HeadStaleness

// openTimeout bounds the look-up of the two streams.
const openTimeout = 5 * time.Second

// Limits of a page.
const (
	DefaultLimit = 500
	MaxLimit     = 1000
	// MaxPageShards is how many shards one page reads, newest first. A page that is
	// short for it carries a cursor. Only where the ranges of more shards than that reach
	// the time at which the page begins must it read them all, as many at a time, to know
	// which event comes first.
	MaxPageShards = 8
)

// Request asks for a page of events of a topic, in the order of (ts, id), newest
// first unless Ascending.
type Request struct {
	Topic string
	// From (inclusive) and To (exclusive) bound the events' time; zero is open. With a
	// cursor they may be left away: it has them.
	From, To time.Time
	// Where is a filter (see query/filter); empty selects all.
	Where string
	// Fields are what each event is to have (see filter.ParseFields); none: all.
	Fields []string
	// Limit is 1 to MaxLimit; 0 means DefaultLimit.
	Limit     int
	Ascending bool
	// Cursor of another page, or its Back; empty begins.
	Cursor string
	// Notice, when set, hears the page's Notice before anything is scanned.
	Notice func(string)
}

// Page is events as JSON objects with the columns' names as keys.
type Page struct {
	Events []json.RawMessage `json:"events"`
	// Cursor continues after the last event; absent on the last page.
	Cursor string `json:"cursor,omitempty"`
	// Back is a cursor that goes the other way: the page of it ends before the first event of this one, in the same
	// order. It is there on the first page too, for what comes. How much that is says a count by it.
	Back string `json:"back,omitempty"`
	// Shards are the public names of the shards that were read.
	Shards []string `json:"shards"`
	// Notice says what a filter that no index covers has to scan, and which of the attributes
	// that it names no event has.
	Notice string `json:"notice,omitempty"`
	// Notes say what the reader should know of the answer.
	Notes []string `json:"notes,omitempty"`
}

// Query reads one page.
func (r *Reader) Query(ctx context.Context, req Request) (*Page, error) {
	p, err := r.plan(ctx, req)
	if err != nil {
		return nil, err
	}
	return r.page(ctx, p, req.Notice)
}

// page reads the page of a plan.
func (r *Reader) page(ctx context.Context, p *plan, notice func(string)) (*Page, error) {
	page := &Page{Events: []json.RawMessage{}, Shards: []string{}}
	l, err := r.leg(ctx, p, page, notice)
	if err != nil {
		return nil, err
	}
	rows, _ := merged([]*leg{l}, p.limit)
	page.Cursor, page.Back = turns([]*leg{l}, rows)
	for _, row := range rows {
		page.Events = append(page.Events, row.json)
	}
	if len(rows) == 0 && page.Cursor == "" && !p.after.set() {
		noticed(&page.Notice, r.unknown(ctx, p), notice)
	}
	return page, nil
}

// leg reads what a topic has for a page, and adds to out what else there is to say of it.
func (r *Reader) leg(ctx context.Context, p *plan, out *Page, notice func(string)) (*leg, error) {
	if p.done {
		return &leg{p: p}, nil
	}
	w, err := r.begin(ctx, p)
	if err != nil {
		return nil, err
	}
	if out.Notice, err = w.notice(ctx); err != nil {
		return nil, err
	}
	if out.Notice != "" && notice != nil {
		notice(out.Notice)
	}
	rows, bound, err := w.rows(ctx)
	if err != nil {
		return nil, err
	}
	if bound != nil {
		if p.limited {
			*bound = p.coarse(*bound)
		}
		rows = before(rows, *bound, p)
	}
	out.Shards, out.Notes = append(out.Shards, w.read...), w.notes()
	return &leg{p: p, rows: rows, bound: bound}, nil
}
