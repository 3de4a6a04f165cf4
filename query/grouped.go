package query

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// GroupedRequest asks how many events there are, for each set of values of some fields, in steps of a range.
type GroupedRequest struct {
	Topic string
	// From (inclusive) and To (exclusive) bound the events' time, and both are given.
	From, To time.Time
	Where    string
	// Width of a step, the first of which begins at From; 0: one step.
	Width time.Duration
	// By are the fields, as a filter writes them; at most MaxFacetFields.
	By []string
	// Bytes counts the bytes of messages in place of events.
	Bytes bool
}

// Group is the count of one set of values in one step.
type Group struct {
	// Step counts from 0.
	Step int64
	// Values are those of By, as text; a field that an event lacks is empty.
	Values []string
	Count  uint64
}

// MaxGroups bounds the groups of one request over all its steps; beyond it the request is refused.
const MaxGroups = histogramGroups

var errGroups = fmt.Errorf("%w: more than %d groups: group by fewer fields, or take a longer step", schemas.ErrRequest, MaxGroups)

// Grouped is an exact count: each event is counted once, whether it is stored or still on its way.
type Grouped struct {
	Groups []Group
	Notes  []string
}

// Grouped counts events by the values of fields.
func (r *Reader) Grouped(ctx context.Context, req GroupedRequest) (*Grouped, error) {
	switch {
	case req.From.IsZero() || req.To.IsZero():
		return nil, fmt.Errorf("%w: groups are counted over a range: give from and to", schemas.ErrRequest)
	case len(req.By) > MaxFacetFields:
		return nil, fmt.Errorf("%w: %d fields to group by, the limit is %d", schemas.ErrRequest, len(req.By), MaxFacetFields)
	case req.Width < 0:
		return nil, fmt.Errorf("%w: a step of %s", schemas.ErrRequest, req.Width)
	}
	p, err := r.plan(ctx, Request{Topic: req.Topic, From: req.From, To: req.To, Where: req.Where})
	if err != nil {
		return nil, err
	}
	fields, err := filter.ParseValues(req.By, &p.topic)
	if err != nil {
		return nil, joinRequest(err)
	}
	w, err := r.begin(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := w.load(ctx, math.MaxInt); err != nil {
		return nil, err
	}
	exprs, params := fields.SQL()
	c := &counting{w: w, cells: map[cell]uint64{}, most: MaxGroups, params: params, settings: histogramSettings}
	c.statement = func(from string) string { return groupedStatement(&req, exprs, from) }
	if err := c.run(ctx); err != nil {
		if strings.Contains(err.Error(), "TOO_MANY_ROWS") {
			err = errGroups
		}
		return nil, err
	}
	out := &Grouped{Groups: make([]Group, 0, len(c.cells)), Notes: w.notes()}
	for at, n := range c.cells {
		g := Group{Step: at.bucket, Count: n}
		if err := json.Unmarshal([]byte(at.value), &g.Values); err != nil {
			return nil, fmt.Errorf("query: ClickHouse's answer has the values %.100q: %w", at.value, err)
		}
		out.Groups = append(out.Groups, g)
	}
	return out, nil
}

// groupedStatement counts the rows of a source by the texts of fields.
func groupedStatement(req *GroupedRequest, exprs []string, from string) string {
	step, count := "toInt64(0)", "count()"
	if req.Width > 0 {
		step = fmt.Sprintf("intDiv(toUnixTimestamp64Nano(ts) - %d, %d)", req.From.UnixNano(), req.Width.Nanoseconds())
	}
	if req.Bytes {
		count = "sum(length(`" + schemas.ColMessage + "`))"
	}
	values := "'[]'"
	if len(exprs) > 0 {
		values = "toJSONString([" + strings.Join(exprs, ", ") + "])"
	}
	return fmt.Sprintf("SELECT %s AS _bucket, %s AS _value, %s AS _n FROM %s GROUP BY _bucket, _value", step, values, count, from)
}
