package trail

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// walk is one page's way through the events, the newest first.
type walk struct {
	q      *query.Reader
	req    *Request
	now    time.Time
	where  string // the request's filter, in one spelling
	digest string
	rows   query.Request // of the next read
	after  *Event        // the place below which the page begins; nil: the top

	held  []Event // events of the last instant, of which there may be more
	found []found
	at    *Event // the last event that was looked at
	over  bool   // there are no more events
}

// found is an entry, and the event at which it stands.
type found struct {
	Entry
	at *Event
}

// step reads events once and adds the entries that they make. It is false at the end.
func (w *walk) step(ctx context.Context) (more bool, err error) {
	page, err := w.read(ctx, w.rows)
	if err != nil {
		return false, err
	}
	w.rows.Cursor, w.rows.From, w.rows.To = page.Cursor, time.Time{}, time.Time{}
	w.over = page.Cursor == ""
	events := w.held
	for _, row := range page.Events {
		e, err := parseEvent(row)
		if err != nil {
			return false, fmt.Errorf("trail of topic %q: ClickHouse's answer is %.200q: %w", w.req.Topic, row, err)
		}
		if w.after == nil || e.compare(w.after) < 0 {
			events = append(events, e)
		}
	}
	if events, w.held = instants(events, w.over); len(w.held) > maxHistory {
		return false, fmt.Errorf("%w: more than %d events happened at %s; select fewer", schemas.ErrRequest, maxHistory, w.held[0].Time.Format(time.RFC3339Nano))
	}
	if len(events) == 0 {
		return !w.over, nil
	}
	histories, err := w.histories(ctx, events)
	if err != nil {
		return false, err
	}
	for i := range events {
		e := &events[i]
		w.at = e
		entry, ok := w.entry(e, histories)
		if ok {
			w.found = append(w.found, found{entry, e})
		}
	}
	return !w.over, nil
}

// entry is what stands at an event, if anything does.
func (w *walk) entry(e *Event, histories map[change]*history) (out Entry, ok bool) {
	events := []Event{*e}
	if e.isChange() {
		h := histories[e.change()]
		if h == nil || h.first == nil || h.first.compare(e) != 0 {
			return out, false // it stands at an earlier event
		}
		events = h.events
	}
	if w.req.Open && !open(events, w.now.Add(-w.req.OpenAfter)) {
		return out, false
	}
	out = fold(events)
	if w.req.History {
		out.History = events
	}
	return out, true
}

// instants drops copies of events, which have the same time, and holds back the events of the
// last instant unless they are the last: a copy with a smaller id may follow, and counts.
func instants(events []Event, last bool) (whole, held []Event) {
	end := len(events)
	if !last {
		for end > 0 && events[end-1].Time.Equal(events[len(events)-1].Time) {
			end--
		}
	}
	held = events[end:]
	least := map[identity]int{}
	for i := range events[:end] {
		least[events[i].identity()] = i // the newest come first, so that the last has the least id
	}
	for i := range events[:end] {
		if least[events[i].identity()] == i {
			whole = append(whole, events[i])
		}
	}
	return whole, held
}

// read reads a page of events, all of it or none.
func (w *walk) read(ctx context.Context, req query.Request) (*query.Page, error) {
	page, err := w.q.Query(ctx, req)
	if err != nil {
		return nil, err
	}
	if len(page.Notes) > 0 {
		return nil, fmt.Errorf("%w: %s. Ask again when it is stored: `almanac doctor` says how far the sinks are", ErrIncomplete, strings.Join(page.Notes, "; "))
	}
	return page, nil
}
