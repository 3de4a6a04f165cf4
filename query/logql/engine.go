package logql

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Bounds of one query.
const (
	// MaxLines is how many lines an answer may have; DefaultLines it has unless told, as Loki does.
	MaxLines     = 5000
	DefaultLines = 100
	// MaxRead is how many events are read for what no filter can say: parsers, templates, unwrapped values.
	MaxRead = 200_000
	// MaxTopics is how many topics one query reads.
	MaxTopics = 20
	// MaxSeries is how many series an answer may have, as Loki's default.
	MaxSeries = 500
	// MaxSteps is how many instants a range may have, as Loki and Prometheus.
	MaxSteps = 11_000
)

// Engine answers queries over topics of kinds log and audit.
type Engine struct{ r *query.Reader }

// New prepares an engine.
func New(r *query.Reader) *Engine { return &Engine{r} }

// Scope is what a query may read: the topics by name that who asks may read.
type Scope struct {
	// Topic, when set, is the one that is asked for.
	Topic string
	// May reports whether a topic may be read; nil: each may.
	May func(topic string) bool
}

// topics are those of a scope that matchers leave, as many as a query may read.
func (e *Engine) topics(ctx context.Context, s Scope, matchers []Matcher) ([]schemas.Topic, error) {
	all, err := e.matching(ctx, s, matchers)
	if len(all) > MaxTopics {
		return nil, &Error{Kind: ErrTooMuch, Msg: fmt.Sprintf(`%d topics may have what is asked for, and one query reads %d: name them, such as {topic="%s"}`, len(all), MaxTopics, all[0].Name)}
	}
	return all, err
}

// matching are the topics of a scope that matchers leave, in the order of their names.
func (e *Engine) matching(ctx context.Context, s Scope, matchers []Matcher) ([]schemas.Topic, error) {
	if s.Topic != "" {
		t, err := e.r.Registry().Topic(ctx, s.Topic)
		if err != nil {
			return nil, err
		}
		if !hasLines(t.Kind) {
			return nil, fmt.Errorf("%w: topic %s is of kind %s, which has no lines: LogQL reads topics of kinds log and audit", schemas.ErrRequest, t.Name, t.Kind)
		}
		return []schemas.Topic{t}, nil
	}
	all, err := e.r.Registry().Topics(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(t schemas.Topic) bool {
		return !hasLines(t.Kind) || s.May != nil && !s.May(t.Name) || slices.ContainsFunc(matchers, func(m Matcher) bool {
			return m.Name == LabelTopic && !m.Matches(t.Name)
		})
	})
	slices.SortFunc(all, func(a, b schemas.Topic) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func hasLines(k schemas.Kind) bool { return k == kinds.Log || k == kinds.Audit }

// fields are the labels of a topic's events. The attributes are looked for only where a label of the query may be one whose
// name Loki could not write.
func (e *Engine) fields(ctx context.Context, t *schemas.Topic, from, to time.Time, names []string) (*topicFields, error) {
	f := fieldsOf(t, nil)
	if !slices.ContainsFunc(names, func(n string) bool {
		_, known := f.sources[n]
		return !known && strings.Contains(n, "_") && aliases[n] == "" && !strings.HasPrefix(n, "__")
	}) {
		return f, nil
	}
	keys, err := e.attributes(ctx, t, from, to)
	return fieldsOf(t, keys), err
}

// attributes are the names of attributes that the newest events of a range have.
func (e *Engine) attributes(ctx context.Context, t *schemas.Topic, from, to time.Time) ([]string, error) {
	got, err := e.r.Fields(ctx, query.CompletionRequest{Topic: t.Name, From: from, To: to, Limit: query.MaxCompletions})
	if err != nil {
		return nil, err
	}
	var keys []string
	for i := range got.Fields {
		if got.Fields[i].Attribute != "" {
			keys = append(keys, got.Fields[i].Attribute)
		}
	}
	return keys, nil
}

// LinesRequest asks for lines.
type LinesRequest struct {
	Pipeline *Pipeline
	// From (inclusive) and To (exclusive) bound the events' time.
	From, To time.Time
	// Limit is 1 to MaxLines.
	Limit int
	// Forward: the oldest first, in place of the newest.
	Forward bool
}

// Lines reads lines, in the order of their times. The notes say what the reader should know of the answer.
func (e *Engine) Lines(ctx context.Context, s Scope, req *LinesRequest) (all []*Entry, notes []string, err error) {
	topics, err := e.topics(ctx, s, req.Pipeline.Matchers)
	if err != nil {
		return nil, nil, err
	}
	read := &reading{want: req.Limit}
	for i := range topics {
		f, err := e.fields(ctx, &topics[i], req.From, req.To, req.Pipeline.names())
		if err != nil {
			return nil, nil, err
		}
		n := 0
		err = e.each(ctx, f, req.Pipeline, pages{req.From, req.To, req.Forward, read}, func(entry *Entry) bool {
			all = append(all, entry)
			n++
			return n < req.Limit
		})
		if err != nil {
			return nil, nil, err
		}
		slices.SortStableFunc(all, func(a, b *Entry) int {
			if req.Forward {
				return cmp.Compare(a.Ts, b.Ts)
			}
			return cmp.Compare(b.Ts, a.Ts)
		})
		all = slices.Clip(all[:min(len(all), req.Limit)])
	}
	return all, once(read.notes), nil
}

// pages is a walk over events.
type pages struct {
	from, to time.Time
	forward  bool
	read     *reading
}

// reading is what one query has read line by line, of all its topics.
type reading struct {
	want   int // lines that are wanted; 0: all, of which samples are kept
	events int
	notes  []string
}

// sampleBytes are kept of a line where numbers are made of lines: two numbers in lists that grow by half.
const sampleBytes = 32

// each calls f with each line of a topic that the pipeline keeps, until f returns false.
func (e *Engine) each(ctx context.Context, f *topicFields, p *Pipeline, over pages, keep func(*Entry) bool) error {
	s := p.selection(f)
	if s.none {
		return nil
	}
	rest := &Pipeline{Stages: s.rest}
	limit := query.MaxLimit
	if over.read.want > 0 && len(s.rest) == 0 {
		limit = min(over.read.want, limit)
	}
	account := budget.Of(ctx)
	req := query.Request{Topic: f.topic.Name, From: over.from, To: over.to, Where: s.where, Limit: limit, Ascending: over.forward}
	for {
		before := account.Held()
		page, err := e.r.Query(ctx, req)
		if err != nil {
			return err
		}
		over.read.notes = append(over.read.notes, page.Notes...)
		held := account.Held() - before
		for _, event := range page.Events {
			if err := ctx.Err(); err != nil {
				return err
			}
			entry, err := f.entry(event)
			if err != nil {
				return err
			}
			kept, err := rest.Apply(ctx, entry)
			if err != nil {
				return err
			}
			if !kept {
				continue
			}
			size := sampleBytes
			if over.read.want > 0 {
				size = entry.bytes()
			}
			if err := account.Take(int64(size)); err != nil {
				return err
			}
			if !keep(entry) {
				return nil
			}
		}
		if page.Cursor == "" {
			return nil
		}
		if over.read.events += len(page.Events); over.read.events >= MaxRead {
			return tooMuchRead()
		}
		account.Free(held) // the page goes, and what was kept of it stays
		req.Cursor = page.Cursor
	}
}

func tooMuchRead() error {
	return &Error{Kind: ErrTooMuch, Msg: fmt.Sprintf("the query reads more than %d events one by one, since it parses lines or reads values of them: narrow the range, or select by labels and text before", MaxRead)}
}

// names are the labels that a pipeline compares or reads.
func (p *Pipeline) names() (out []string) {
	for i := range p.Matchers {
		out = append(out, p.Matchers[i].Name)
	}
	var in func(Cond)
	in = func(c Cond) {
		switch c := c.(type) {
		case Any:
			for _, one := range c {
				in(one)
			}
		case All:
			for _, one := range c {
				in(one)
			}
		case *Text:
			out = append(out, c.Name)
		case *Compare:
			out = append(out, c.Name)
		}
	}
	for _, s := range p.Stages {
		if f, ok := s.(*LabelFilter); ok {
			in(f.Cond)
		}
	}
	return out
}
