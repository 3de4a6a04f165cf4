package documents

import (
	"context"
	"math"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

const (
	// windowShare is how many times the span that a page is expected to have its window is, so
	// that most pages take one: how dense documents are varies.
	windowShare = 2
	// windowSteps is how often a window is windowGrowth times as long as before, where it was too
	// short, until all that is left is read.
	windowSteps, windowGrowth = 3, 8
)

// density is what the last list of a path found.
type density struct {
	newest int64   // creation of the first document of a list from its beginning (unix ns)
	each   float64 // ns between two
}

// windows are the lower bounds of what is read for n documents of a range, one below the other.
// The last is that of the range. All versions of a document have its creation, so each document is
// in one of them.
func windows(g *Range, n int, d density) []int64 {
	var out []int64
	top := d.newest
	if g.Before != nil {
		top = g.Before.Created
	}
	if top = min(top, g.To); d.each > 0 && n > 0 {
		long := windowShare * d.each * float64(n)
		for range windowSteps {
			low := float64(top) - long
			if low <= float64(g.From) || low <= math.MinInt64/2 {
				break
			}
			out = append(out, int64(low))
			long *= windowGrowth
		}
	}
	return append(out, g.From)
}

// saw is the density after a page from the beginning of a list, or a later one.
func (d density) saw(g *Range, found []*document.Record) density {
	if len(found) < 2 {
		return d
	}
	first, last := found[0].Created, found[len(found)-1].Created
	if d.each = float64(first-last) / float64(len(found)-1); g.Before == nil && g.To == math.MaxInt64 {
		d.newest = max(d.newest, first)
	}
	return d
}

// place is a path of a topic.
type place struct{ topic, path string }

// page reads up to n documents of a range that ClickHouse has, in a list's order, with their
// bodies in the same statement or without. Documents of one path come by windows of their
// creation: without a lower bound ClickHouse reads something of each part that is older.
func (r *Reader) page(ctx context.Context, t *schemas.Topic, g *Range, n int, bodies bool) (out []*document.Record, err error) {
	if g.All || g.Below || !g.Where.All() {
		return r.within(ctx, t, g, n, bodies) // how many match of those that a window has is not known
	}
	at := place{t.Name, g.Path}
	r.mu.Lock()
	d := r.dense[at]
	r.mu.Unlock()
	w := *g
	for _, w.From = range windows(g, n, d) {
		found, err := r.within(ctx, t, &w, n-len(out), bodies)
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); len(out) >= n {
			break
		}
		w.To = min(w.To, w.From)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.dense) >= maxKnown {
		clear(r.dense)
	}
	r.dense[at] = d.saw(g, out)
	return out, nil
}
