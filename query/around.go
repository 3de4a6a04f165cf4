package query

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of Around.
const (
	DefaultAround = 10
	MaxAround     = 200
	// aroundPages is how many pages of shards one side of an event may take.
	aroundPages = 8
)

// AroundRequest names an event and asks for those next to it in time.
type AroundRequest struct {
	Topic string
	// Ts and ID are the event's own.
	Ts time.Time
	ID string
	// Where is a filter on the others, such as those of the same service.
	Where string
	// N is how many on each side, 1 to MaxAround; 0 means DefaultAround.
	N int
}

// Around is an event and its neighbours, all in the order of (ts, id).
type Around struct {
	Before []json.RawMessage `json:"before"`
	Event  json.RawMessage   `json:"event"`
	After  []json.RawMessage `json:"after"`
	// Shards are the public names of the shards that were read.
	Shards []string `json:"shards"`
	Notes  []string `json:"notes,omitempty"`
}

// Event reads one event; ErrNoEvent when there is none.
func (r *Reader) Event(ctx context.Context, topic string, ts time.Time, id string) (json.RawMessage, error) {
	if _, err := schemas.ParseID(id); err != nil {
		return nil, fmt.Errorf("%w: %q is not an event's id, which is a UUID", schemas.ErrRequest, id)
	}
	if ts.IsZero() {
		return nil, fmt.Errorf("%w: an event is found by its time and its id", schemas.ErrRequest)
	}
	page, err := r.Query(ctx, Request{Topic: topic, From: ts, To: ts.Add(1), Where: "id = '" + id + "'", Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.Events) == 0 {
		return nil, fmt.Errorf("%w: topic %s does not have one of %s with the id %s", ErrNoEvent, topic, ts.UTC().Format(time.RFC3339Nano), id)
	}
	return page.Events[0], nil
}

// Around reads an event and those before and after it.
func (r *Reader) Around(ctx context.Context, req AroundRequest) (*Around, error) {
	n := cmp.Or(req.N, DefaultAround)
	if n < 1 || n > MaxAround {
		return nil, fmt.Errorf("%w: n is %d, it must be 1 to %d", schemas.ErrRequest, n, MaxAround)
	}
	out := &Around{Shards: []string{}}
	var err error
	if out.Event, err = r.Event(ctx, req.Topic, req.Ts, req.ID); err != nil {
		return nil, err
	}
	var sides [2]Page
	g, gctx := fanout.WithContext(ctx)
	for i, asc := range []bool{false, true} {
		g.Go(func() error { return r.side(gctx, &req, n, asc, &sides[i]) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.Reverse(sides[0].Events)
	out.Before, out.After = append([]json.RawMessage{}, sides[0].Events...), append([]json.RawMessage{}, sides[1].Events...)
	for _, s := range sides {
		for _, name := range s.Shards {
			if !slices.Contains(out.Shards, name) {
				out.Shards = append(out.Shards, name)
			}
		}
		for _, note := range s.Notes {
			if !slices.Contains(out.Notes, note) {
				out.Notes = append(out.Notes, note)
			}
		}
	}
	return out, nil
}

// side adds to out the n events next to one, in a direction.
func (r *Reader) side(ctx context.Context, req *AroundRequest, n int, asc bool, out *Page) error {
	id, err := schemas.ParseID(req.ID)
	if err != nil {
		return joinRequest(err)
	}
	cursor := ""
	for range aroundPages {
		p, err := r.plan(ctx, Request{Topic: req.Topic, Where: req.Where, Limit: n - len(out.Events), Ascending: asc, Cursor: cursor})
		if err != nil {
			return err
		}
		if cursor == "" {
			p.after = position{ts: req.Ts.UnixNano(), id: id}
		}
		page, err := r.page(ctx, p, nil)
		if err != nil {
			return err
		}
		out.Events = append(out.Events, page.Events...)
		out.Shards, out.Notes = append(out.Shards, page.Shards...), append(out.Notes, page.Notes...)
		if cursor = page.Cursor; cursor == "" || len(out.Events) >= n {
			return nil
		}
	}
	out.Notes = append(out.Notes, fmt.Sprintf("one side has fewer events than asked for: only %d shards were read for it", len(out.Shards)))
	return nil
}
