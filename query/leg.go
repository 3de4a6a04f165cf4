package query

import (
	"slices"
	"strings"
	"time"
)

// leg is what one topic has for a page, in the direction in which it was read. That is the page's
// own, or the other one where the page goes back.
type leg struct {
	p    *plan
	rows []row // up to one more than the page's limit
	// bound, when set, is where reading stopped: what lies at or beyond it is not known.
	bound *int64
	used  int // how many of the rows are on the page
}

// merged puts the rows of legs on one page, up to limit of them, and returns of each row the index of its leg.
// Of events with the same time and id, which only different topics have, the one of the earlier leg comes first.
func merged(legs []*leg, limit int) (rows []row, legOf []int) {
	type owned struct {
		row
		leg int
	}
	var all []owned
	first := legs[0].p
	var bound *int64
	for i, l := range legs {
		for _, r := range l.rows {
			all = append(all, owned{r, i})
		}
		if l.bound != nil && (bound == nil || first.beyond(*bound, *l.bound)) {
			bound = l.bound
		}
	}
	slices.SortStableFunc(all, func(a, b owned) int {
		order := a.compare(b.position)
		if !first.asc {
			order = -order
		}
		if order == 0 && first.back {
			return b.leg - a.leg
		}
		return order
	})
	for _, r := range all {
		if len(rows) == limit || bound != nil && !first.beyond(*bound, r.ts) {
			break
		}
		rows, legOf = append(rows, r.row), append(legOf, r.leg)
		legs[r.leg].used++
	}
	return rows, legOf
}

// grains are the times to which a bound is coarsened, the largest first.
var grains = []time.Duration{time.Minute, time.Second, time.Millisecond, time.Microsecond}

// coarse returns the bound of a page whose reader has a row limit. Where reading stopped is the time of an event, which may be one that
// the reader must not see, and cursors have it. So it is taken to a whole minute before, in the direction of reading, and what is
// between is read again. Where the page began within that minute, it is a smaller unit, so that each page goes on.
func (p *plan) coarse(bound int64) int64 {
	for _, grain := range grains {
		at := bound - bound%int64(grain)
		if at != bound && !p.asc {
			at += int64(grain)
		}
		if p.beyond(at, p.start()) && !p.beyond(at, bound) {
			return at
		}
	}
	return bound
}

// more reports whether the leg may have events beyond the page.
func (l *leg) more() bool { return l.used < len(l.rows) || l.bound != nil }

// onward is a cursor that goes on in the direction of reading. last is the page's last row as it was read, of any leg, if
// it has one: what comes to a quiet topic meanwhile and belongs before that is on no later page, where it would be out of order.
func (l *leg) onward(last *row) string {
	c := l.p.cursor(l.p.after)
	c.back = l.p.back
	switch {
	case l.used == len(l.rows) && l.bound != nil:
		c.at = position{ts: *l.bound, edge: true}
	case l.used > 0:
		c.at = l.rows[l.used-1].position
	case !l.p.after.set():
		c.at = position{ts: l.p.start(), edge: true}
	}
	if last != nil && l.p.beyond(last.ts, c.at.ts) {
		c.at = position{ts: last.ts, edge: true}
	}
	c.done = !l.p.back && !l.more()
	return c.encode()
}

// opposite is a cursor that goes the other way from where the page begins. first is when the first event of
// the page is, of any leg; 0 for none.
func (l *leg) opposite(first int64) string {
	c := l.p.cursor(position{edge: true})
	c.back = !l.p.back
	switch {
	case len(l.rows) > 0:
		c.at = l.rows[0].position
	case first != 0:
		c.at.ts = first
	case l.bound != nil && l.p.asc:
		c.at.ts = *l.bound - 1
	case l.bound != nil:
		c.at.ts = *l.bound + 1
	default:
		c.at.ts = l.p.near(l.p.to, l.p.from)
	}
	return c.encode()
}

// turns makes the two cursors of a page, and puts its rows, which were read, in the page's order. forward is empty on the
// last page; back never is, as events may still come.
func turns(legs []*leg, rows []row) (forward, back string) {
	first, last := int64(0), (*row)(nil)
	if len(rows) > 0 {
		first, last = rows[0].ts, &rows[len(rows)-1]
	}
	more := false
	var on, other []string
	for _, l := range legs {
		more = more || l.more()
		on, other = append(on, l.onward(last)), append(other, l.opposite(first))
	}
	forward, back = strings.Join(on, cursorsSep), strings.Join(other, cursorsSep)
	switch {
	case legs[0].p.back:
		slices.Reverse(rows)
		return back, forward
	case !more:
		return "", back
	}
	return forward, back
}

// cursorsSep is between the cursors of several topics.
const cursorsSep = "."
