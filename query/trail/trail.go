package trail

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Reader reads trails. It is safe for concurrent use.
type Reader struct{ q *query.Reader }

// New prepares a reader of trails over a reader of events.
func New(q *query.Reader) *Reader { return &Reader{q} }

// Page is entries, the newest first.
type Page struct {
	Entries []Entry `json:"entries"`
	// Cursor continues after the last entry; absent on the last page.
	Cursor string `json:"cursor,omitempty"`
}

// Bounds of a page.
const (
	// maxReads is how many reads of events one page makes.
	maxReads = 32
	// minRows and query.MaxLimit bound the events of one read.
	minRows = 100
)

// Page reads a page of entries.
func (r *Reader) Page(ctx context.Context, req Request) (*Page, error) {
	w, err := r.begin(ctx, &req)
	if err != nil {
		return nil, err
	}
	page := &Page{Entries: []Entry{}}
	for n := 0; n < maxReads || w.at == nil; n++ {
		more, err := w.step(ctx)
		if err != nil {
			return nil, err
		}
		if len(w.found) > req.Limit || !more {
			break
		}
	}
	last := w.at
	if len(w.found) > req.Limit {
		w.found, w.over = w.found[:req.Limit], false
		last = w.found[req.Limit-1].at
	}
	for i := range w.found {
		page.Entries = append(page.Entries, w.found[i].Entry)
	}
	if !w.over {
		page.Cursor = place{last.Time.UnixNano(), last.ID.String(), w.now.UnixNano(), w.digest}.encode()
	}
	return page, nil
}

// begin checks a request and prepares its walk.
func (r *Reader) begin(ctx context.Context, req *Request) (*walk, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	t, err := r.q.Registry().TopicOf(ctx, req.Topic, kinds.Audit)
	if err != nil {
		return nil, err
	}
	w := &walk{q: r.q, req: req, now: time.Now()}
	var from place
	if req.Cursor != "" {
		if from, err = decodePlace(req.Cursor); err != nil {
			return nil, err
		}
		w.now = time.Unix(0, from.Now)
	}
	if w.where, err = req.where(&t, w.now); err != nil {
		return nil, err
	}
	w.digest = req.digest(w.where)
	w.rows = query.Request{
		Topic: req.Topic, From: req.From, To: req.To, Where: req.filter(w.where),
		Limit: min(max(2*req.Limit+2, minRows), query.MaxLimit),
	}
	if req.Cursor != "" {
		if from.For != w.digest {
			return nil, fmt.Errorf("%w: %w: it continues another request; all but the limit must be as they were", schemas.ErrRequest, ErrCursor)
		}
		w.after = from.event()
		w.rows.To = w.after.Time.Add(1) // others of that time may come behind it
	}
	return w, nil
}
