package query

import (
	"slices"

	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// evaluated makes a page's rows of fresh frames without ClickHouse, where that says
// surely what ClickHouse would: by filter.Evaluator, and the lines by frame.LineWriter.
type evaluated struct {
	p      *plan
	writer *frame.LineWriter
	rows   []row // of the page, so far
	picked []picked
	line   []byte
}

// picked is an event that matches, and its place in the open frame.
type picked struct {
	position
	at int
}

// take adds what an open frame has for the page. ask says that ClickHouse must be asked
// for all of it: because a result is not sure, where only some columns are wanted, or
// where the ledger covers it. A frame of which surely nothing matches goes nowhere.
func (j *evaluated) take(f *recent.Frame, r *frame.Reader, plain bool) (ask bool) {
	p := j.p
	edge := edgeOf(j.rows, p)
	lo, hi := p.within(edge)
	judge := p.where.On(r)
	j.picked = j.picked[:0]
	for i := range r.Rows() {
		at := position{ts: r.Ts(i)}
		if at.ts < lo || at.ts > hi {
			continue
		}
		v := judge.Of(i)
		if v == filter.No {
			continue
		}
		if v == filter.Unsure || !plain {
			return true
		}
		at.id = r.ID(i)
		if (edge == nil || p.before(at, *edge)) && (!p.after.set() || p.after.edge || p.before(p.after, at)) {
			j.picked = append(j.picked, picked{at, i})
		}
	}
	if len(j.picked) > 0 {
		j.add(f, r)
	}
	return false
}

// add renders what was picked of a frame, the first that a page can have of it.
func (j *evaluated) add(f *recent.Frame, r *frame.Reader) {
	p := j.p
	slices.SortFunc(j.picked, func(a, b picked) int {
		if p.asc {
			return a.compare(b.position)
		}
		return b.compare(a.position)
	})
	if j.writer == nil {
		j.writer = frame.NewLineWriter(&p.topic)
	}
	j.writer.Open(r, f.Schema, schemas.MonthOf(r.Ts(0)), 0)
	some := j.picked[:min(len(j.picked), p.limit+1)]
	more := make([]row, len(some))
	for i, e := range some {
		j.line = j.writer.Append(j.line[:0], e.at, 0)
		more[i] = row{e.position, slices.Clone(j.line[:len(j.line)-1])}
	}
	j.rows = merge(j.rows, more, p)
}

// before says that a comes before b on the page.
func (p *plan) before(a, b position) bool {
	if p.asc {
		return a.compare(b) < 0
	}
	return b.compare(a) < 0
}
