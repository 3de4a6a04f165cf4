package query

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// placed is an event of a topic in a list of all, newest first or last.
type placed struct {
	position
	topic int
}

// Pages forth and back are parts of one list, whatever the limits, the topics, the order, times and ids that are
// the same, and wherever reading stops before it knows more.
func TestPagesForthAndBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		req := SearchRequest{Ascending: rapid.Bool().Draw(t, "asc")}
		var all []placed
		for i := range rapid.IntRange(1, 4).Draw(t, "topics") {
			req.Topics = append(req.Topics, fmt.Sprint("t", i))
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 60), 0, 20, rapid.ID).Draw(t, "events") {
				all = append(all, placed{position{ts: int64(1 + n/4), id: schemas.ID{byte(n % 4)}}, i})
			}
		}
		slices.SortFunc(all, func(a, b placed) int {
			order := a.compare(b.position)
			if !req.Ascending {
				order = -order
			}
			return cmp.Or(order, cmp.Compare(a.topic, b.topic))
		})
		begin, end := 0, 0 // of the page, in the list
		back := ""
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			goesBack := back != "" && rapid.Bool().Draw(t, "back")
			asked := req.Cursor
			if goesBack {
				asked = back
			} else if step > 0 && asked == "" {
				if end != len(all) {
					t.Fatalf("the last page ends with event %d of %d", end, len(all))
				}
				continue
			}
			limit := rapid.IntRange(1, 12).Draw(t, "limit")
			got, forward, before := pageOf(t, SearchRequest{Topics: req.Topics, Ascending: req.Ascending, Cursor: asked, Limit: limit}, all)
			if goesBack {
				begin, end = begin-len(got), begin
			} else {
				begin, end = end, end+len(got)
			}
			if len(got) > limit || begin < 0 || end > len(all) || !slices.Equal(got, all[begin:end]) {
				t.Fatalf("step %d, back %v: the page has %v, want those at %d to %d of %v", step, goesBack, got, begin, end, all)
			}
			if before == "" || goesBack && forward == "" {
				t.Fatalf("step %d has the cursors %q and %q", step, forward, before)
			}
			req.Cursor, back = forward, before
		}
	})
}

// What comes between two pages, of whatever topic, is in order and on one of them alone, and what was there is on one.
func TestPagesWhileEventsCome(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		req := SearchRequest{Ascending: rapid.Bool().Draw(t, "asc"), Limit: rapid.IntRange(1, 5).Draw(t, "limit")}
		topics := rapid.IntRange(2, 3).Draw(t, "topics")
		var all []placed
		add := func(ts int64, topic int) {
			all = append(all, placed{position{ts: ts, id: schemas.ID{byte(topic)}}, topic})
		}
		for i := range topics {
			req.Topics = append(req.Topics, fmt.Sprint("t", i))
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 40), 0, 12, rapid.ID).Draw(t, "events") {
				add(int64(2*n), i)
			}
		}
		there := len(all)
		var had []placed
		for page := 0; page == 0 || req.Cursor != ""; page++ {
			got, forward, _ := pageOf(t, req, all)
			had, req.Cursor = append(had, got...), forward
			at := int64(2*rapid.IntRange(0, 41).Draw(t, "at") + 1) // a time that no other has
			if page < 20 && rapid.Bool().Draw(t, "one comes") && !slices.ContainsFunc(all, func(e placed) bool { return e.ts == at }) {
				add(at, rapid.IntRange(0, topics-1).Draw(t, "of"))
			}
		}
		for i := 1; i < len(had); i++ {
			order := had[i-1].compare(had[i].position)
			if !req.Ascending {
				order = -order
			}
			if order > 0 || order == 0 && had[i-1].topic >= had[i].topic {
				t.Fatalf("%v before %v, of %v", had[i-1], had[i], had)
			}
		}
		for _, e := range all[:there] {
			if !slices.Contains(had, e) {
				t.Fatalf("%v was there and is on no page: %v", e, had)
			}
		}
	})
}

// pageOf reads a page of a list as Search does of topics, with bounds by chance.
func pageOf(t *rapid.T, req SearchRequest, all []placed) (got []placed, forward, back string) {
	parts, err := req.parts()
	if err != nil {
		t.Fatal(err)
	}
	var legs []*leg
	for i, part := range parts {
		p := &plan{topic: schemas.NewTopic(part.Topic), limit: part.Limit, asc: part.Ascending, from: 1, to: math.MaxInt64}
		if p.where, err = filter.ParseAt("", &p.topic, time.Unix(0, 1)); err != nil {
			t.Fatal(err)
		}
		if part.Cursor != "" {
			c, err := decodeCursor(part.Cursor)
			if err == nil {
				err = c.continues(part.Topic, p.where.String(), part.Ascending)
			}
			if err == nil {
				err = p.resume(c, part)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		legs = append(legs, legOf(t, p, i, all))
	}
	rows, topicOf := merged(legs, req.Limit)
	forward, back = turns(legs, rows)
	if legs[0].p.back {
		slices.Reverse(topicOf)
	}
	for i, r := range rows {
		got = append(got, placed{r.position, topicOf[i]})
	}
	return got, forward, back
}

// legOf is what a walk finds of one topic: up to one more than the limit, up to a bound.
func legOf(t *rapid.T, p *plan, topic int, all []placed) *leg {
	l := &leg{p: p}
	if p.done {
		return l
	}
	for _, e := range all {
		if e.topic == topic && e.ts >= p.lower() && e.ts <= p.upper() && (!p.after.set() || p.after.edge || p.before(p.after, e.position)) {
			l.rows = append(l.rows, row{position: e.position})
		}
	}
	l.rows = merge(l.rows, nil, &plan{limit: len(all), asc: p.asc})
	if len(l.rows) > 0 && rapid.Bool().Draw(t, "bound") {
		bound := l.rows[rapid.IntRange(0, len(l.rows)-1).Draw(t, "bounded by")].ts
		if p.beyond(bound, p.start()) { // a walk goes on where a page would bring nothing nearer
			l.bound, l.rows = &bound, before(l.rows, bound, p)
		}
	}
	l.rows = l.rows[:min(len(l.rows), p.limit+1)]
	return l
}

// A cursor of several topics is taken only for the same.
func TestSearchParts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		req  SearchRequest
		says string
	}{
		"none":            {SearchRequest{}, "a search is of 1 to 8"},
		"nine":            {SearchRequest{Topics: strings.Split("abcdefghi", "")}, "9 topics"},
		"twice":           {SearchRequest{Topics: []string{"b", "a", "b"}}, "named twice: a, b, b"},
		"another number":  {SearchRequest{Topics: []string{"a", "b"}, Cursor: "x"}, "a search of 2 topics"},
		"without a piece": {SearchRequest{Topics: []string{"a", "b"}, Cursor: "x."}, "a search of 2 topics"},
	} {
		if _, err := c.req.parts(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	parts, err := (&SearchRequest{Topics: []string{"b", "a"}}).parts()
	if err != nil || parts[0].Topic != "a" || parts[1].Topic != "b" || parts[0].Limit != DefaultLimit {
		t.Errorf("%+v, %v", parts, err)
	}
}

// The bound of a page is coarse where its reader has a row limit: pages go on by it, nothing is left out, and of a time a minute or
// more after the page's beginning less than the minute is told.
func TestCoarseBounds(t *testing.T) {
	t.Parallel()
	const minute = int64(time.Minute)
	for name, c := range map[string]struct {
		asc                bool
		start, bound, want int64
	}{
		"down":                            {false, 9 * minute, 5*minute + 7, 6 * minute},
		"up":                              {true, minute, 5*minute + 7, 5 * minute},
		"a whole minute":                  {false, 9 * minute, 5 * minute, 5 * minute},
		"down, within the minute":         {false, 5*minute + 3e9, 5*minute + 7, 5*minute + 1e9},
		"up, within the minute":           {true, 5*minute + 7, 5*minute + 3e9 + 7, 5*minute + 3e9},
		"within the microsecond":          {false, 5*minute + 9, 5*minute + 7, 5*minute + 7},
		"the last times there are, down":  {false, math.MaxInt64, math.MaxInt64 - 7, math.MaxInt64 - 7},
		"the page begins where it stands": {false, 5*minute + 7, 5*minute + 7, 5*minute + 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &plan{asc: c.asc, from: 1, to: math.MaxInt64, after: position{ts: c.start, edge: true}}
			if got := p.coarse(c.bound); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		p := &plan{asc: rapid.Bool().Draw(t, "asc"), from: 1, to: math.MaxInt64}
		start := rapid.Int64Range(1, math.MaxInt64).Draw(t, "start")
		p.after = position{ts: start, edge: true}
		bound := start + rapid.Int64Range(1, 1e12).Draw(t, "apart")
		if !p.asc {
			bound = start - rapid.Int64Range(1, 1e12).Draw(t, "apart")
		}
		if bound < 1 {
			t.Skip("before all times")
		}
		if got := p.coarse(bound); !p.beyond(got, start) || p.beyond(got, bound) {
			t.Errorf("from %d, bound %d (ascending %t): %d", start, bound, p.asc, got)
		}
	})
}
