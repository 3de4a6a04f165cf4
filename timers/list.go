package timers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Filter of a list.
type Filter struct {
	// State is empty for all.
	State timer.State
	// Slot is nil for all, else one that the group has.
	Slot *int
	// DueBefore is zero for no bound.
	DueBefore time.Time
	// Limit of a page: timer.DefaultPage if 0, at most timer.MaxPage.
	Limit int
	// Cursor of the page before.
	Cursor string
}

// Page is part of a list, ordered by due time and id.
type Page struct {
	Timers []Timer `json:"timers"`
	Cursor string  `json:"cursor,omitempty"`
}

// recordBytes is about what the record of a timer takes while a list is read.
const recordBytes = 600

// List reads the timers of a group that are in the front, as they were created. It reads the headers of the
// group's records through, so a page costs what the group has. A page ends early where its specs have maxPageBytes.
func (t *Timers) List(ctx context.Context, group string, f Filter) (Page, error) {
	g, err := t.group(ctx, group)
	if err != nil {
		return Page{}, err
	}
	if f.Slot != nil && (*f.Slot < 0 || *f.Slot >= g.Slots) {
		return Page{}, fmt.Errorf("%w: slot %d: group %s has the slots 0 to %d", schemas.ErrRequest, *f.Slot, group, g.Slots-1)
	}
	after, err := parseCursor(f.Cursor)
	if err != nil {
		return Page{}, err
	}
	last, err := t.records(ctx, schemas.TimerGroupFilter(t.topic.InFronts(), group), nil)
	if err != nil {
		return Page{}, err
	}
	var out []*timer.Record
	for _, r := range last {
		if (f.State == "" || r.State() == f.State) && (f.Slot == nil || r.Key.Slot == *f.Slot) && (f.DueBefore.IsZero() || r.Due < f.DueBefore.UnixNano()) && after.before(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, byDue)
	limit := min(cmp.Or(f.Limit, timer.DefaultPage), timer.MaxPage)
	var p Page
	for len(p.Timers) < limit && len(out) > 0 {
		some := out[:min(limit-len(p.Timers), len(out))]
		out = out[len(some):]
		seen, err := t.visible(ctx, some)
		if err != nil {
			return Page{}, err
		}
		last, bytes := some[len(some)-1], 0
		for chunk := range slices.Chunk(seen, specsAtOnce) {
			n, err := t.readSpecs(ctx, chunk)
			if err != nil {
				return Page{}, err
			}
			for _, r := range chunk {
				p.Timers = append(p.Timers, view(r))
			}
			if bytes += n; bytes > maxPageBytes && chunk[len(chunk)-1] != seen[len(seen)-1] {
				last, limit = chunk[len(chunk)-1], len(p.Timers)
				break
			}
		}
		if len(out) > 0 || last != some[len(some)-1] {
			r := last
			p.Cursor = strconv.FormatInt(r.Due, 10) + "." + r.Key.ID
		} else {
			p.Cursor = ""
		}
	}
	return p, nil
}

// records reads the last record of each key of a filter, from the beginning: a consumer of last messages
// by subject takes the server seconds to make with many keys. each, unless nil, is called with every record and its size.
func (t *Timers) records(ctx context.Context, filter string, each func(*timer.Record, int64)) (map[string]*timer.Record, error) {
	last := map[string]*timer.Record{}
	_, err := streams.Headers(ctx, t.js, schemas.StreamTimers, filter, 1, func(m *streams.Message) error {
		if !schemas.IsEvent(m.Header, m.Size) {
			return nil
		}
		r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
		if err != nil {
			return nil // a stray is the router's
		}
		if last[m.Subject] == nil {
			if err := budget.Of(ctx).Take(recordBytes); err != nil {
				return err
			}
		}
		last[m.Subject] = &r
		if each != nil {
			each(&r, fronts.StoredBytes(m.Subject, m.Header, m.Size))
		}
		return nil
	})
	return last, err
}

// History returns every transition of a timer, oldest first: what is in the front and what is stored.
func (t *Timers) History(ctx context.Context, group, id string) ([]Timer, error) {
	_, key, err := t.key(ctx, group, id)
	if err != nil {
		return nil, err
	}
	var records []*timer.Record
	_, err = streams.Headers(ctx, t.js, schemas.StreamTimers, key.Subject(), 1, func(m *streams.Message) error {
		if r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil); err == nil {
			records = append(records, &r)
		}
		return nil
	})
	if err == nil {
		records, err = t.visible(ctx, records)
	}
	if err != nil {
		return nil, err
	}
	out, err := t.stored(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		out = append(out, view(r))
	}
	slices.SortStableFunc(out, func(a, b Timer) int { return cmp.Compare(a.Seq, b.Seq) })
	out = slices.CompactFunc(out, func(a, b Timer) bool { return a.Seq == b.Seq })
	if len(out) == 0 {
		return nil, noTimer(group, id)
	}
	return out, nil
}

// cursor is a place in a list.
type cursor struct {
	due int64
	id  string
}

func parseCursor(s string) (c cursor, err error) {
	if s == "" {
		return c, nil
	}
	due, id, ok := strings.Cut(s, ".")
	if c.due, err = strconv.ParseInt(due, 10, 64); !ok || err != nil {
		return c, fmt.Errorf("%w: %q is not the cursor of a list of timers", schemas.ErrRequest, s)
	}
	c.id = id
	return c, nil
}

func (c cursor) before(r *timer.Record) bool {
	return cmp.Or(cmp.Compare(c.due, r.Due), strings.Compare(c.id, r.Key.ID)) < 0
}
