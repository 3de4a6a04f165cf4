package query

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// Reader reads one Almanac. It is safe for concurrent use.
type Reader struct {
	js     jetstream.JetStream
	events jetstream.Stream
	shards jetstream.Stream
	reg    *registry.Registry
	db     *tables.DB
}

// New prepares a reader.
func New(nc *nats.Conn, reg *registry.Registry, db *tables.DB) (*Reader, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	r := &Reader{js: js, reg: reg, db: db}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if r.events, err = js.Stream(ctx, schemas.StreamEvents); err != nil {
		return nil, fmt.Errorf("query: stream %s: %w", schemas.StreamEvents, err)
	}
	if r.shards, err = js.Stream(ctx, schemas.StreamShards); err != nil {
		return nil, fmt.Errorf("query: stream %s: %w", schemas.StreamShards, err)
	}
	return r, nil
}

// openTimeout bounds the look-up of the two streams.
const openTimeout = 5 * time.Second

// Limits of a page.
const (
	DefaultLimit = 500
	MaxLimit     = 1000
	// MaxPageShards is how many shards one page reads, newest first, as long as
	// their ranges let it stop: then the page is short and carries a cursor.
	MaxPageShards = 8
)

// Request asks for a page of events of a topic, in the order of (ts, id), newest
// first unless Ascending.
type Request struct {
	Topic string
	// From and To bound the events' time, both inclusive; zero is open.
	From, To time.Time
	// Where is a filter (see query/filter); empty selects all.
	Where string
	// Limit is 1 to MaxLimit; 0 means DefaultLimit.
	Limit     int
	Ascending bool
	// Cursor of the page before; empty begins.
	Cursor string
}

// Page is events as JSON objects with the columns' names as keys.
type Page struct {
	Events []json.RawMessage `json:"events"`
	// Cursor continues after the last event; absent on the last page.
	Cursor string `json:"cursor,omitempty"`
	// Shards are the public names of the shards that were read.
	Shards []string `json:"shards"`
	// Notes say what the reader should know of the answer.
	Notes []string `json:"notes,omitempty"`
}

// plan is a checked request.
type plan struct {
	topic  schemas.Topic
	where  *filter.Expr
	from   int64 // unix ns, inclusive
	to     int64
	after  position // where the page begins; zero: at the edge
	limit  int
	asc    bool
	cursor cursorKey
}

// Query reads one page.
func (r *Reader) Query(ctx context.Context, req Request) (*Page, error) {
	p, err := r.plan(ctx, req)
	if err != nil {
		return nil, err
	}
	page := &Page{Events: []json.RawMessage{}, Shards: []string{}}
	fresh, err := r.freshRows(ctx, p, page)
	if err != nil {
		return nil, err
	}
	stored, bound, err := r.storedRows(ctx, p, page)
	if err != nil {
		return nil, err
	}
	rows := merge(stored, fresh, p)
	if bound != nil {
		rows = before(rows, *bound, p)
	}
	switch {
	case len(rows) > p.limit:
		rows = rows[:p.limit]
		page.Cursor = p.cursor.encode(rows[p.limit-1].position)
	case bound != nil:
		page.Cursor = p.cursor.encode(position{ts: *bound, edge: true})
	}
	for _, row := range rows {
		page.Events = append(page.Events, row.json)
	}
	return page, nil
}

func (r *Reader) plan(ctx context.Context, req Request) (*plan, error) {
	p := &plan{limit: req.Limit, asc: req.Ascending, from: 1, to: math.MaxInt64}
	if req.Limit < 0 || req.Limit > MaxLimit {
		return nil, fmt.Errorf("%w: limit is %d, it must be 1 to %d", ErrRequest, req.Limit, MaxLimit)
	}
	if p.limit == 0 {
		p.limit = DefaultLimit
	}
	var err error
	if !req.From.IsZero() {
		if p.from, err = schemas.UnixNs(req.From); err != nil {
			return nil, fmt.Errorf("%w: from: %w", ErrRequest, err)
		}
	}
	if !req.To.IsZero() {
		if p.to, err = schemas.UnixNs(req.To); err != nil {
			return nil, fmt.Errorf("%w: to: %w", ErrRequest, err)
		}
	}
	if p.from > p.to {
		return nil, fmt.Errorf("%w: from (%s) lies after to (%s)", ErrRequest, req.From.UTC().Format(time.RFC3339Nano), req.To.UTC().Format(time.RFC3339Nano))
	}
	if p.topic, err = r.topic(ctx, req.Topic); err != nil {
		return nil, err
	}
	if p.where, err = filter.Parse(req.Where, &p.topic); err != nil {
		return nil, joinRequest(err)
	}
	p.cursor = newCursorKey(req)
	if req.Cursor != "" {
		if p.after, err = p.cursor.decode(req.Cursor); err != nil {
			return nil, joinRequest(err)
		}
	}
	return p, nil
}

// topic reads a descriptor; an unknown topic is the request's fault.
func (r *Reader) topic(ctx context.Context, name string) (schemas.Topic, error) {
	t, err := r.reg.Topic(ctx, name)
	if err != nil && schemas.Reason(err) != "" {
		return t, joinRequest(err)
	}
	return t, err
}

// upper and lower are the range of times the page may still draw from.
func (p *plan) upper() int64 {
	if !p.asc && p.after.set() {
		return min(p.to, p.after.ts)
	}
	return p.to
}

func (p *plan) lower() int64 {
	if p.asc && p.after.set() {
		return max(p.from, p.after.ts)
	}
	return p.from
}
