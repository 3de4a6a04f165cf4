package query

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Bounds of what one page reads of the streams, and of what one statement takes.
const (
	// maxFreshBytes is what a page opens of both streams above checkpoints and heads,
	// encoded; when it would need more, it says that it left some out.
	maxFreshBytes = 128 << 20
	// maxStatementBytes is what goes to ClickHouse with one statement,
	// decompressed, give or take a frame. The first of a page takes
	// firstPortionBytes: the newest page of a busy topic needs no more.
	maxStatementBytes = 32 << 20
	firstPortionBytes = 1 << 20
)

// evaluate adds the rows of frames, the nearest first, until the page is full and
// every other frame lies further on. gone says that some were no longer in their
// stream.
func (w *walk) evaluate(ctx context.Context, frames []recent.Meta, rows []row) (_ []row, gone bool, err error) {
	p := w.p
	recent.Sort(frames, p.asc)
	full := func(next *recent.Meta) bool {
		return len(rows) > p.limit && p.beyond(p.near(next.MinTs(), next.MaxTs()), rows[p.limit].ts)
	}
	gone, err = w.chunks(ctx, frames, full, func(some []recent.Frame) (err error) {
		rows, err = w.r.freshRows(ctx, p, some, w.seen, rows)
		return err
	})
	return rows, gone, err
}

// freshRows adds the rows that frames have for a page: those that can be told here
// first, and what ClickHouse says of the others.
func (r *Reader) freshRows(ctx context.Context, p *plan, frames []recent.Frame, seen seenFrames, rows []row) ([]row, error) {
	own := evaluated{p: p, rows: rows}
	for len(frames) > 0 {
		cover := p.ledger.Covering(frames[0].Source, p.lower(), p.upper())
		plain := len(cover) == 0 && p.fields == nil
		chunk := freshChunk(p, frames, seen, func(f *recent.Frame, open *frame.Reader) bool { return own.take(f, open, plain) })
		if len(chunk.blocks) > 0 {
			more, err := r.askFresh(ctx, p, &chunk, cover, edgeOf(own.rows, p))
			if err != nil {
				return nil, err
			}
			own.rows = merge(own.rows, more, p)
		}
		frames = frames[chunk.frames:]
	}
	return own.rows, nil
}

// askFresh lets ClickHouse evaluate frames and returns their rows. What lies beyond edge,
// if given, is of no use to the page.
func (r *Reader) askFresh(ctx context.Context, p *plan, c *chunk, cover ledger.Cover, edge *position) ([]row, error) {
	cond, params := p.condition(p.within(edge))
	keep, erased := cover.Keep()
	maps.Copy(params, erased)
	return r.collect(ctx, &tables.Select{
		SQL: fmt.Sprintf("SELECT %s FROM (%s) WHERE %s AND %s %s", p.columns(params),
			tables.FreshSource(&p.topic, c.schema, 0, 0), cond, keep, p.order()),
		Params: params, Fresh: c.blocks, FreshStructure: p.topic.FrameStructure(c.schema),
	})
}

// edgeOf is the last row a page needs to know that it is not the last; nil while
// it is not full.
func edgeOf(rows []row, p *plan) *position {
	if len(rows) > p.limit {
		return &rows[p.limit].position
	}
	return nil
}

// within is the page's range up to an edge, if given.
func (p *plan) within(edge *position) (lo, hi int64) {
	lo, hi = p.lower(), p.upper()
	switch {
	case edge != nil && p.asc:
		hi = min(hi, edge.ts)
	case edge != nil:
		lo = max(lo, edge.ts)
	}
	return lo, hi
}

// chunk is frames of one schema version that the same erasures may concern, as
// many as one statement may take.
type chunk struct {
	schema int
	source schemas.Source // of the first
	frames int            // how many it was made of
	blocks [][]byte
}

// freshChunk opens the first of the frames. A frame that was routed while the
// streams were read is met in both; were it evaluated twice, its rows would take
// each other's place below the statement's limit, so seen remembers the frames. A frame for which ask says no is left out.
func freshChunk(p *plan, frames []recent.Frame, seen seenFrames, ask func(*recent.Frame, *frame.Reader) bool) (c chunk) {
	erasures := p.ledger
	var reader frame.Reader
	size := 0
	c.schema, c.source = frames[0].SchemaUnder(&p.topic), frames[0].Source
	for ; c.frames < len(frames) && size < maxStatementBytes; c.frames++ {
		f := &frames[c.frames]
		if f.SchemaUnder(&p.topic) != c.schema || !erasures.Alike(f.Source, c.source) {
			break
		}
		names := namesOf(f, &p.topic)
		if seen.has(names) || p.snapshot.Open(f, &reader, &p.topic) != nil { // the router makes a dead letter of what does not open
			continue
		}
		seen.add(names) // its checksum held, so the digest is its own
		if !ask(f, &reader) {
			continue
		}
		c.blocks = append(c.blocks, slices.Clone(reader.Raw()))
		size += len(reader.Raw())
	}
	return c
}

// anyWithin says whether a frame has an event in a range. Those of a busy topic
// overlap an instant by the dozen, and few have an event of it.
func anyWithin(r *frame.Reader, lo, hi int64) bool {
	for i := range r.Rows() {
		if ts := r.Ts(i); ts >= lo && ts <= hi {
			return true
		}
	}
	return false
}
