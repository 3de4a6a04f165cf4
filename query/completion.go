package query

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Bounds of completion.
const (
	// SampleEvents is how many events Fields and Values look at, the newest, give or
	// take a frame.
	SampleEvents = 50_000
	// MaxCompletions bounds their answer, DefaultCompletions is its size unless told.
	MaxCompletions     = 1000
	DefaultCompletions = 100
)

// CompletionRequest asks what the newest events of a topic have.
type CompletionRequest struct {
	Topic string
	// From (inclusive) and To (exclusive) bound the events' time; zero is open.
	From, To time.Time
	// Field is the field whose values are asked for; Fields does not use it.
	Field string
	// Prefix is how names or values begin; empty is all.
	Prefix string
	// Limit is 1 to MaxCompletions; 0 means DefaultCompletions.
	Limit int
}

// Sample says what was read for an answer.
type Sample struct {
	// Read is how many events were looked at. Sampled says that there are more.
	Read    uint64 `json:"read"`
	Sampled bool   `json:"sampled"`
	// Shards are the public names of the shards that were read.
	Shards []string `json:"shards"`
	Notes  []string `json:"notes,omitempty"`
}

// FieldCount is a field, and how many of the events that were read have it.
type FieldCount struct {
	filter.Field
	Count uint64 `json:"count"`
}

// FieldNames are the fields of a topic: its columns in their order, then the attributes
// that its newest events have, the most frequent first.
type FieldNames struct {
	Fields []FieldCount `json:"fields"`
	Sample
}

// ValueNames are values of a field in a topic's newest events, the most frequent first.
type ValueNames struct {
	Field  string       `json:"field"`
	Values []ValueCount `json:"values"`
	Sample
}

// The buckets of a sample.
const (
	sampledEvents = iota
	sampledColumns
	sampledOthers // attributes, or the values of a field
)

// Fields lists the fields of a topic, for completion.
func (r *Reader) Fields(ctx context.Context, req CompletionRequest) (*FieldNames, error) {
	s, err := r.sample(ctx, &req, func(t *schemas.Topic) (string, map[string]string, error) {
		columns := ""
		for _, f := range filter.ColumnsOf(t) {
			if f.Text {
				columns += fmt.Sprintf(", (toInt64(%[2]d), if(notEmpty(%[1]s), '%[3]s', ''))", sql.QuoteName(f.Name), sampledColumns, f.Name)
			}
		}
		return fmt.Sprintf("arrayConcat([(toInt64(%d), '')%s], arrayMap(k -> (toInt64(%d), toString(k)), arrayFilter(k -> startsWith(concat('%s.', k), {prefix:String}), mapKeys(`%[4]s`))))",
			sampledEvents, columns, sampledOthers, schemas.ColAttributes), nil, nil
	})
	if err != nil {
		return nil, err
	}
	out := &FieldNames{Fields: []FieldCount{}, Sample: s.sample}
	for _, f := range filter.ColumnsOf(&s.topic) {
		if !strings.HasPrefix(f.Name, req.Prefix) {
			continue
		}
		n := s.sample.Read
		if f.Text {
			n = s.cells[cell{sampledColumns, f.Name}]
		}
		out.Fields = append(out.Fields, FieldCount{f, n})
	}
	for _, v := range mostFrequent(s.cells, sampledOthers) {
		out.Fields = append(out.Fields, FieldCount{filter.Field{Name: filter.AttributeName(v.Value), Want: filter.AttributeWant(), Attribute: v.Value}, v.Count})
	}
	out.Fields = out.Fields[:min(len(out.Fields), req.Limit)]
	return out, nil
}

// Values lists values of a field, for completion.
func (r *Reader) Values(ctx context.Context, req CompletionRequest) (*ValueNames, error) {
	s, err := r.sample(ctx, &req, func(t *schemas.Topic) (string, map[string]string, error) {
		if req.Field == "" {
			return "", nil, fmt.Errorf("%w: which field? name one, such as level or attributes.host", schemas.ErrRequest)
		}
		fields, err := filter.ParseValues([]string{req.Field}, t)
		if err != nil {
			return "", nil, joinRequest(err)
		}
		exprs, params := fields.SQL()
		return fmt.Sprintf("[(toInt64(%d), ''), if(startsWith(%[3]s, {prefix:String}), (toInt64(%[2]d), %[3]s), (toInt64(%[2]d), ''))]", sampledEvents, sampledOthers, exprs[0]), params, nil
	})
	if err != nil {
		return nil, err
	}
	out := &ValueNames{Field: req.Field, Values: mostFrequent(s.cells, sampledOthers), Sample: s.sample}
	out.Values = out.Values[:min(len(out.Values), req.Limit)]
	return out, nil
}

// sampled is what a sample came to.
type sampled struct {
	topic  schemas.Topic
	cells  map[cell]uint64
	sample Sample
}

// sample counts pairs of a bucket and a text over the newest events.
func (r *Reader) sample(ctx context.Context, req *CompletionRequest, pairs func(*schemas.Topic) (string, map[string]string, error)) (*sampled, error) {
	if req.Limit = cmp.Or(req.Limit, DefaultCompletions); req.Limit < 1 || req.Limit > MaxCompletions {
		return nil, fmt.Errorf("%w: limit is %d, it must be 1 to %d", schemas.ErrRequest, req.Limit, MaxCompletions)
	}
	p, err := r.plan(ctx, Request{Topic: req.Topic, From: req.From, To: req.To})
	if err != nil {
		return nil, err
	}
	expr, params, err := pairs(&p.topic)
	if err != nil {
		return nil, err
	}
	if params == nil {
		params = map[string]string{}
	}
	params["prefix"] = filter.ParamString(req.Prefix)
	w, err := r.begin(ctx, p)
	if err != nil {
		return nil, err
	}
	more, err := w.newest(ctx, MaxPageShards)
	if err != nil {
		return nil, err
	}
	c := &counting{w: w, cells: map[cell]uint64{}, params: params, settings: facetSettings}
	read := func() uint64 { return c.cells[cell{sampledEvents, ""}] }
	c.full = func() bool { return read() >= SampleEvents }
	c.statement = func(from string) string {
		newest := fmt.Sprintf("(SELECT * FROM %s ORDER BY ts DESC LIMIT %d)", from, SampleEvents-min(read(), SampleEvents-1))
		return valueStatement(expr, newest, MaxCompletions)
	}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	return &sampled{topic: p.topic, cells: c.cells, sample: Sample{
		Read: read(), Sampled: more || c.full(), Shards: append([]string{}, w.read...), Notes: w.notes(),
	}}, nil
}
