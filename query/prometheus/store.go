package prometheus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/query/prometheus/expr"
	"github.com/almanac-events/almanac/query/series"
)

// Bounds of queries.
const (
	// MaxPoints bounds the points that all queries under way hold: 16 bytes each. Series
	// count too, by the bytes of their labels and 256 more.
	MaxPoints = 5_000_000
	// MaxSamples bounds what the engine holds for one query.
	MaxSamples = 5_000_000
	// minSamples is what it has at least, where others leave little room: else it is refused. Of
	// sampleSpace bytes a sample takes 16, and as many where its series grows.
	minSamples  = 250_000
	sampleSpace = 32
	// MaxTime bounds one query.
	MaxTime = 60 * time.Second
	// Lookback is how old the newest point of a series may be that counts at an instant.
	Lookback = 5 * time.Minute

	// freshStall is how long a query waits for what is accepted and not stored while nothing
	// moves, freshWait how long at most.
	freshStall = time.Second
	freshWait  = 5 * time.Second
)

// Store runs queries. It is safe for concurrent use.
type Store struct {
	events *query.Reader
	series *series.Reader
	parser parser.Parser
	limit  int64 // of held
	held   atomic.Int64
}

// New prepares a store over a reader of events.
func New(r *query.Reader) *Store {
	return &Store{
		events: r, series: series.New(r), parser: expr.Parser(), limit: MaxPoints,
	}
}

// engine is Prometheus's, which holds as many samples as the query's account has room for.
func (s *Store) engine(ctx context.Context) (*promql.Engine, error) {
	room, err := budget.Of(ctx).Part(minSamples*sampleSpace, MaxSamples*sampleSpace)
	if err != nil {
		return nil, err
	}
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: int(room / sampleSpace), Timeout: MaxTime, LookbackDelta: Lookback, EnableAtModifier: true, EnableNegativeOffset: true, Parser: s.parser,
		NoStepSubqueryIntervalFn: func(int64) int64 { return expr.SubqueryStep.Milliseconds() },
	}), nil
}

// Parser reads expressions and selectors as the engine does.
func (s *Store) Parser() parser.Parser { return s.parser }

// Query is a query of a topic. Start, End and Step make a range; without a step it is of one
// instant, Start.
type Query struct {
	Topic, Expr string
	Start, End  time.Time
	Step        time.Duration
	// Lookback, when not 0, replaces the store's.
	Lookback time.Duration
	// AsStored has the query wait for nothing that is accepted and not stored yet: its caller did.
	AsStored bool
}

// Exec runs a query and calls f with its result, which is valid until f returns. warning says
// what the result does not include.
func (s *Store) Exec(ctx context.Context, q *Query, f func(result *promql.Result, warning string) error) error {
	var run promql.Query
	var c expr.Cost
	parsed, err := s.parser.ParseExpr(q.Expr)
	if err == nil {
		c, err = expr.CostOf(parsed, max(0, q.End.Sub(q.Start)), q.Step)
	}
	if err != nil {
		return &ParseError{err}
	}
	engine, err := s.engine(ctx)
	if err != nil {
		return err
	}
	opts := promql.NewPrometheusQueryOpts(false, q.Lookback, nil)
	if q.Step > 0 {
		run, err = engine.NewRangeQuery(ctx, s.topic(q.Topic, &c), opts, q.Expr, q.Start, q.End, q.Step)
	} else {
		run, err = engine.NewInstantQuery(ctx, s.topic(q.Topic, &c), opts, q.Expr, q.Start)
	}
	if err != nil {
		return &ParseError{err}
	}
	defer run.Close()
	warning := ""
	if !q.AsStored {
		if warning, err = s.Fresh(ctx, q.Topic); err != nil {
			return err
		}
	}
	return f(run.Exec(ctx), warning)
}

// ParseError is what is wrong with an expression.
type ParseError struct{ err error }

// Error is the engine's own text.
func (e *ParseError) Error() string { return e.err.Error() }

// Unwrap returns the engine's error.
func (e *ParseError) Unwrap() error { return e.err }

// Fresh waits a short time until what a topic accepted before the call can be read. warning
// says how much cannot.
func (s *Store) Fresh(ctx context.Context, topic string) (warning string, err error) {
	wait, cancel := context.WithTimeout(ctx, freshWait)
	defer cancel()
	pending, err := s.events.WaitStored(wait, []string{topic}, freshStall, nil)
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return "", err
	}
	switch {
	case pending > 0 && filter.LimitOf(ctx) != "", err != nil && pending == 0: // how many there are of others' is not said
		return "events that were accepted and are not stored yet are not in this answer", nil
	case pending > 0:
		return fmt.Sprintf("%d events that were accepted and are not stored yet are not in this answer", pending), nil
	}
	return "", nil
}

// Topic returns what the engine reads of a topic.
func (s *Store) Topic(name string) storage.Queryable { return s.topic(name, &expr.Cost{}) }

// topic is Topic for a query of some cost.
func (s *Store) topic(name string, c *expr.Cost) storage.Queryable {
	return storage.QueryableFunc(func(from, to int64) (storage.Querier, error) {
		return &querier{s: s, topic: name, from: from, to: to, growth: c.Growth, text: c.Text}, nil
	})
}
