package query

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// HistogramRequest asks how many events of a topic there are in a range of time: in
// all, and, with a Step, in each step of it.
type HistogramRequest struct {
	Topic string
	// From (inclusive) and To (exclusive) bound the events' time; zero is open.
	From, To time.Time
	// Where is a filter; empty counts all.
	Where string
	// Cursor, when set, is of a page with this filter, or its Back: only what pages by it would have is counted.
	Cursor string
	// Step is the length of a bucket; the zero value: no buckets.
	Step Step
	// By splits each bucket by the values of a column: level, service, type or a
	// promoted field of type lowcardinality. Empty: not.
	By string
	// Notice, when set, hears the answer's Notice before anything is scanned.
	Notice func(string)
}

// Histogram is exact: each event is counted once, whether it is stored or still on
// its way.
type Histogram struct {
	Count uint64 `json:"count"`
	// Step and Buckets are there when a step was asked for. The buckets are those
	// of the range, or from the first event to the last where that is open, the
	// empty ones too.
	Step string `json:"step,omitempty"`
	// Zone is where days, weeks and months begin, where it is not UTC.
	Zone    string   `json:"zone,omitempty"`
	By      string   `json:"by,omitempty"`
	Buckets []Bucket `json:"buckets,omitempty"`
	// Shards are the public names of the shards that were read.
	Shards []string `json:"shards"`
	Notice string   `json:"notice,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// Bucket is the events from At on, for one step.
type Bucket struct {
	At    time.Time `json:"ts"`
	Count uint64    `json:"count"`
	// By is the count of each value, with By; the values beyond MaxHistogramValues
	// together are OtherValues.
	By map[string]uint64 `json:"by,omitempty"`
}

const (
	// MaxBuckets is what a person still looks at, and a program reads at once.
	MaxBuckets = 1000
	// MaxHistogramValues is how many values a histogram tells apart, the most frequent.
	MaxHistogramValues = 10
	// OtherValues is the name of the others.
	OtherValues = "(other)"
	// histogramGroups bounds what ClickHouse keeps for one histogram: a bucket for each of
	// 200 values.
	histogramGroups = MaxBuckets * 200
)

// Histogram counts events.
func (r *Reader) Histogram(ctx context.Context, req HistogramRequest) (*Histogram, error) {
	asked := Request{Topic: req.Topic, From: req.From, To: req.To, Where: req.Where, Cursor: req.Cursor}
	if c, err := decodeCursor(req.Cursor); err == nil {
		asked.Ascending = c.asc // a count has no order of its own
	}
	p, err := r.plan(ctx, asked)
	if err != nil {
		return nil, err
	}
	if p.done {
		return &Histogram{Shards: []string{}, By: req.By}, nil
	}
	by, err := histogramColumn(&p.topic, req.By)
	if err != nil {
		return nil, err
	}
	if err := req.Step.validate(); err != nil {
		return nil, err
	}
	w, err := r.begin(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &Histogram{Shards: []string{}, By: req.By}
	if out.Notice, err = w.notice(ctx); err != nil {
		return nil, err
	}
	if out.Notice != "" && req.Notice != nil {
		req.Notice(out.Notice)
	}
	if err := w.load(ctx, math.MaxInt); err != nil {
		return nil, err
	}
	c := &counting{w: w, step: req.Step, cells: map[cell]uint64{}, settings: histogramSettings}
	c.statement = func(from string) string { return histogramStatement(c.step, by, from) }
	if err := c.fits(ctx); err != nil {
		return nil, err
	}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	for _, n := range c.cells {
		out.Count += n
	}
	if !req.Step.None() {
		out.Step, out.Buckets = req.Step.String(), buckets(c.cells, c.step, p.from, p.to, by != "")
		if zone := req.Step.zone(); zone != time.UTC {
			out.Zone = zone.String()
		}
	}
	out.Shards, out.Notes = append(out.Shards, w.read...), w.notes()
	if out.Count == 0 && !p.after.set() {
		noticed(&out.Notice, r.unknown(ctx, p), req.Notice)
	}
	return out, nil
}

// histogramStatement counts the rows of a source in steps, by a column.
func histogramStatement(step Step, by, from string) string {
	bucket, value := "0", "''"
	var groups []string
	if !step.None() {
		bucket = step.expression()
		groups = append(groups, "_bucket")
	}
	if by != "" {
		value = "toString(" + sql.QuoteName(by) + ")"
		groups = append(groups, "_value")
	}
	sql := fmt.Sprintf("SELECT %s AS _bucket, %s AS _value, count() AS _n FROM %s", bucket, value, from)
	if len(groups) > 0 {
		sql += " GROUP BY " + strings.Join(groups, ", ")
	}
	return sql
}

// histogramColumn is the column to split by.
func histogramColumn(t *schemas.Topic, name string) (string, error) {
	names := []string{schemas.ColLevel, schemas.ColService, schemas.ColType}
	for _, f := range t.Fields {
		if f.Type == schemas.TypeLowCardinality {
			names = append(names, f.Name)
		}
	}
	if name == "" || slices.Contains(names, name) {
		return name, nil
	}
	return "", fmt.Errorf("%w: cannot split by %q; it must be one of %s", schemas.ErrRequest, name, strings.Join(names, ", "))
}
