package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/query"
)

// following reads one page after the other.
type following struct {
	onePage  bool
	page     func(context.Context, query.Request) (*query.Page, error)
	print    func([]json.RawMessage) error // of one page, as it comes
	progress func(events, shards int)      // between two pages
}

// run reads pages until the request's limit is reached or there is no more, and
// returns the last cursor, "" at the end, with the notes of all pages. The cursor is
// that of the last page printed, also with an error.
func (f *following) run(ctx context.Context, req query.Request) (cursor string, notes []string, err error) {
	cursor = req.Cursor
	want, found, shards := req.Limit, 0, map[string]bool{}
	for {
		page, err := f.page(ctx, req)
		if err != nil {
			return cursor, notes, err
		}
		found += len(page.Events)
		for _, n := range page.Notes {
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
		if err := f.print(page.Events); err != nil {
			return cursor, notes, err
		}
		cursor = page.Cursor
		if cursor == "" || found >= want || f.onePage {
			return cursor, notes, nil
		}
		for _, s := range page.Shards {
			shards[s] = true
		}
		f.progress(found, len(shards))
		// The cursor has the range of the first page, and its notice was printed.
		req.Cursor, req.Limit, req.Notice = cursor, want-found, nil
		req.From, req.To = time.Time{}, time.Time{}
	}
}

// pageProgress draws how far a query came, and ends the line when it is asked to.
func (a *app) pageProgress() (draw func(events, shards int), end func()) {
	if !terminal(a.stderr) {
		return func(int, int) {}, func() {}
	}
	drawn := false
	return func(events, shards int) {
			drawn = true
			_, _ = fmt.Fprintf(a.stderr, "\r\x1b[K%s found, %s read", plural(events, "event"), plural(shards, "shard"))
		}, func() {
			if drawn {
				_, _ = fmt.Fprint(a.stderr, "\r\x1b[K")
			}
		}
}
