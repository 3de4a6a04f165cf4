package main

import (
	"cmp"
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

// run reads pages until the request's limit is reached or there is no more. It returns
// them as one whose events were printed: with the last cursor, "" at the end, the first's Back, and the
// notes and shards of all. A page that goes back is one alone. The cursor is that of the last page printed, also with an
// error.
func (f *following) run(ctx context.Context, req query.Request) (whole query.Page, err error) {
	whole.Cursor, whole.Shards = req.Cursor, []string{}
	want, found, shards := req.Limit, 0, map[string]bool{}
	for {
		page, err := f.page(ctx, req)
		if err != nil {
			return whole, err
		}
		found += len(page.Events)
		for _, n := range page.Notes {
			if !slices.Contains(whole.Notes, n) {
				whole.Notes = append(whole.Notes, n)
			}
		}
		for _, s := range page.Shards {
			if !shards[s] {
				shards[s], whole.Shards = true, append(whole.Shards, s)
			}
		}
		whole.Notice = cmp.Or(whole.Notice, page.Notice)
		if err := f.print(page.Events); err != nil {
			return whole, err
		}
		whole.Cursor, whole.Back = page.Cursor, cmp.Or(whole.Back, page.Back)
		if whole.Cursor == "" || found >= want || f.onePage || query.Backwards(req.Cursor) {
			return whole, nil
		}
		f.progress(found, len(shards))
		// The cursor has the range of the first page, and its notice was printed.
		req.Cursor, req.Limit, req.Notice = whole.Cursor, want-found, nil
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
			_, _ = fmt.Fprintf(a.stderr, clearLine+"%s found, %s read", plural(events, "event"), plural(shards, "shard"))
		}, func() {
			if drawn {
				_, _ = fmt.Fprint(a.stderr, clearLine)
			}
		}
}
