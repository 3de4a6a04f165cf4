package trail

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// history is all that a change left.
type history struct {
	events []Event // the oldest first, each once
	first  *Event  // the earliest that the request selects
}

// Bounds of one read of histories.
const (
	// maxNamesBytes of quoted ids and resources fit into a filter, with scopes beside them.
	maxNamesBytes = filter.MaxFilterBytes / 2
	// maxHistory is how many events the changes of one read may have.
	maxHistory = 100_000
)

// histories reads all events of the changes among some events, whenever they happened.
func (w *walk) histories(ctx context.Context, events []Event) (map[change]*history, error) {
	out := map[change]*history{}
	var names []change
	for i := range events {
		if c := events[i].change(); events[i].isChange() && out[c] == nil {
			out[c] = &history{}
			names = append(names, c)
		}
	}
	for len(names) > 0 {
		where, n := group(names)
		if n == 0 {
			return nil, fmt.Errorf("%w: request %.80q and resource %.80q are too long to look for: %d bytes, the limit is %d", schemas.ErrRequest, names[0].request, names[0].resource, len(names[0].request)+len(names[0].resource), maxNamesBytes)
		}
		if err := w.addEvents(ctx, where, out); err != nil {
			return nil, err
		}
		names = names[n:]
	}
	for _, h := range out {
		h.events = once(h.events)
	}
	return out, w.selectFirst(ctx, out)
}

// selectFirst finds the earliest event of each change that the request selects.
func (w *walk) selectFirst(ctx context.Context, all map[change]*history) error {
	chosen := map[schemas.ID]bool{}
	if w.where != "" {
		var names []change
		for c := range all {
			names = append(names, c)
		}
		for len(names) > 0 {
			where, n := group(names)
			err := w.each(ctx, where+" AND ("+w.where+")", func(e Event) { chosen[e.ID] = true })
			if err != nil {
				return err
			}
			names = names[n:]
		}
	}
	for _, h := range all {
		for i := range h.events {
			if e := &h.events[i]; w.req.fits(e) && (w.where == "" || chosen[e.ID]) {
				h.first = e
				break
			}
		}
	}
	return nil
}

// group is a condition of the events of the first of some changes, as many as fit.
func group(names []change) (where string, n int) {
	var requests, resources, scopes []string
	add := func(to *[]string, v string) {
		if !slices.Contains(*to, v) {
			*to = append(*to, v)
		}
	}
	size := 0
	for ; n < len(names) && len(requests) < filter.MaxList && len(resources) < filter.MaxList; n++ {
		c := names[n]
		if size += len(filter.Quote(c.request)) + len(filter.Quote(c.resource)) + len(filter.Quote(c.scope)) + 6; size > maxNamesBytes {
			break
		}
		add(&requests, c.request)
		add(&resources, c.resource)
		add(&scopes, c.scope)
	}
	return fmt.Sprintf("%s = '%s' AND %s AND %s AND %s", schemas.ColType, kinds.TypeChange, in(kinds.ColRequestID, requests), in(kinds.ColResource, resources), in(kinds.ColScope, scopes)), n
}

// addEvents adds the events of a condition to the histories they belong to.
func (w *walk) addEvents(ctx context.Context, where string, to map[change]*history) error {
	return w.each(ctx, where, func(e Event) {
		if h := to[e.change()]; h != nil {
			h.events = append(h.events, e)
		}
	})
}

// each calls f with every event of a condition.
func (w *walk) each(ctx context.Context, where string, f func(Event)) error {
	req := query.Request{Topic: w.req.Topic, Where: where, Limit: query.MaxLimit}
	for n := 0; ; {
		page, err := w.read(ctx, req)
		if err != nil {
			return err
		}
		for _, row := range page.Events {
			e, err := parseEvent(row)
			if err != nil {
				return fmt.Errorf("trail of topic %q: ClickHouse's answer is %.200q: %w", w.req.Topic, row, err)
			}
			f(e)
		}
		if n += len(page.Events); n > maxHistory {
			return fmt.Errorf("%w: the changes of one page have more than %d events; take a smaller limit", schemas.ErrRequest, maxHistory)
		}
		if req.Cursor = page.Cursor; req.Cursor == "" {
			return nil
		}
	}
}
