package query

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// plan is a checked request.
type plan struct {
	topic   schemas.Topic
	ledger  ledger.Erasures
	asked   *filter.Expr // what the caller wrote
	where   *filter.Expr // with the row limit of who asks
	fields  *filter.Fields
	from    int64 // unix ns; both are in the range
	to      int64
	after   position // where the page begins; zero: at the edge
	limit   int
	limited bool // who asks has a row limit
	asc     bool // the direction in which it is read
	back    bool // which is not the page's own
	done    bool // there is nothing left to read
	now     int64
	// snapshot is from before anything else was read.
	snapshot *recent.Snapshot
}

func (r *Reader) plan(ctx context.Context, req Request) (*plan, error) {
	p := &plan{limit: cmp.Or(req.Limit, DefaultLimit), asc: req.Ascending, now: time.Now().UnixNano(), limited: filter.LimitOf(ctx) != ""}
	if p.limit < 1 || p.limit > MaxLimit {
		return nil, fmt.Errorf("%w: limit is %d, it must be 1 to %d", schemas.ErrRequest, req.Limit, MaxLimit)
	}
	var err error
	if err = p.setRange(req.From, req.To); err != nil {
		return nil, err
	}
	var c cursor
	if req.Cursor != "" {
		if c, err = decodeCursor(req.Cursor); err == nil {
			err = p.resume(c, req)
		}
		if err != nil {
			return nil, joinRequest(err)
		}
	}
	if err := schemas.ValidateTopicName(req.Topic); err != nil {
		return nil, joinRequest(err)
	}
	g, gctx := fanout.WithContext(ctx)
	g.Go(func() (err error) { p.snapshot, err = r.index.Snapshot(gctx, req.Topic); return err })
	g.Go(func() (err error) {
		// The ledger before the topic, which then has every column that it names.
		if p.ledger, err = r.ledger.Of(gctx, req.Topic); err == nil {
			p.topic, err = r.topic(gctx, req.Topic)
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if p.asked, p.where, err = filter.ParseWithin(ctx, req.Where, &p.topic, time.Unix(0, p.now)); err != nil {
		return nil, joinRequest(err)
	}
	if p.fields, err = filter.ParseFields(req.Fields, &p.topic); err != nil {
		return nil, joinRequest(err)
	}
	if req.Cursor != "" {
		if err := c.continues(req.Topic, p.where.String(), req.Ascending); err != nil {
			return nil, joinRequest(err)
		}
	}
	return p, nil
}

func (p *plan) setRange(from, to time.Time) error {
	first, last, err := schemas.Between(from, to)
	if err != nil {
		return joinRequest(err)
	}
	p.from, p.to = max(first, 1), last
	return nil
}

// resume goes on after a cursor, in the range of its first page. A range that
// is given again must be the same.
func (p *plan) resume(c cursor, req Request) error {
	if !req.From.IsZero() && p.from != c.from || !req.To.IsZero() && p.to != c.to {
		return fmt.Errorf("%w: it continues a query of another range of time; leave from and to away, the cursor has them", ErrCursor)
	}
	p.after, p.from, p.to, p.now = c.at, c.from, c.to, c.now
	p.back, p.done, p.asc = c.back, c.done, req.Ascending != c.back
	return nil
}

// cursor is one of the plan's pages at a position.
func (p *plan) cursor(at position) cursor {
	return cursor{at: at, asc: p.asc != p.back, from: p.from, to: p.to, now: p.now, topic: digest4(p.topic.Name), where: digest4(p.where.String())}
}

// topic reads a descriptor; an unknown topic is the request's fault.
func (r *Reader) topic(ctx context.Context, name string) (schemas.Topic, error) {
	t, err := r.reg.Topic(ctx, name)
	if err != nil && schemas.Reason(err) != "" {
		return t, joinRequest(err)
	}
	return t, err
}

// upper and lower are the range of times the page may still draw from.
func (p *plan) upper() int64 {
	if !p.asc && p.after.set() {
		return min(p.to, p.after.ts)
	}
	return p.to
}

func (p *plan) lower() int64 {
	if p.asc && p.after.set() {
		return max(p.from, p.after.ts)
	}
	return p.from
}

// span is that range, in the page's direction.
func (p *plan) span() recent.Range {
	return recent.Range{From: p.lower(), To: p.upper(), Ascending: p.asc}
}

// near is the end of a range that the page meets first.
func (p *plan) near(minTs, maxTs int64) int64 {
	if p.asc {
		return minTs
	}
	return maxTs
}

// beyond says that ts lies further on than edge, in the page's direction.
func (p *plan) beyond(ts, edge int64) bool {
	if p.asc {
		return ts > edge
	}
	return ts < edge
}

// start is where the page's range begins, in its direction.
func (p *plan) start() int64 { return p.near(p.lower(), p.upper()) }
