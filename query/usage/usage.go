package usage

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Reader reads usage. It is safe for concurrent use.
type Reader struct {
	events *query.Reader
	reg    *registry.Registry
	db     *tables.DB
	// ledger says whether ClickHouse has what erasures did.
	ledger *registry.LedgerCache
}

// New prepares a reader of usage over a reader of events.
func New(r *query.Reader) *Reader {
	return &Reader{events: r, reg: r.Registry(), db: r.DB(), ledger: registry.NewLedgerCache(r.Registry())}
}

// MaxBills bounds the bills of a Report; Bills streams any number.
const MaxBills = 1_000_000

// Report reads the bills of a request. A request that selects nothing, and is not grouped, has
// one bill of zeros.
func (r *Reader) Report(ctx context.Context, req Request) (*Report, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	rep := &Report{Topic: req.Topic, From: req.From, To: req.To, Measure: req.Measure, GroupBy: req.GroupBy, Bills: []Bill{}}
	err := r.Bills(ctx, req, func(b Bill) error {
		if len(rep.Bills) == MaxBills {
			return fmt.Errorf("%w: more than %d bills; stream them, or select fewer", schemas.ErrRequest, MaxBills)
		}
		rep.Bills = append(rep.Bills, b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rep, nil
}

// Bills calls f with each bill, in the order of meter, provider, space and customer, as far as it is
// for them, or of time. An error of f ends it.
func (r *Reader) Bills(ctx context.Context, req Request, f func(Bill) error) error {
	if err := req.check(); err != nil {
		return err
	}
	t, err := r.topic(ctx, req.Topic)
	if err != nil {
		return err
	}
	return r.ask(ctx, t, &req, func(s *statement) error { return r.bills(ctx, s, f) })
}

// topic reads the descriptor of a topic of kind meter.
func (r *Reader) topic(ctx context.Context, name string) (*schemas.Topic, error) {
	t, err := r.reg.TopicOf(ctx, name, kinds.Meter)
	if err != nil {
		return nil, err
	}
	_, err = r.ledger.Of(ctx, name)
	return &t, err
}

// maxAsks bounds how often a statement is asked whose marks or sums moved; the last one goes
// by cause, which needs neither.
const maxAsks = 6

// ask plans a statement and runs it, again while marks or sums move.
func (r *Reader) ask(ctx context.Context, t *schemas.Topic, req *Request, run func(*statement) error) error {
	for try := 1; ; try++ {
		byCause := req.ByCause || req.Space != ""
		snap, err := r.snapshot(ctx, t, byCause && !req.at)
		if err != nil {
			return err
		}
		s := &statement{t: t, database: r.db.Database, req: req, snap: snap, byCause: byCause || try == maxAsks || req.at && !snap.Quiet()}
		if err := s.plan(); err != nil {
			return err
		}
		if err = run(s); !errors.Is(err, once.ErrMoved) || try == maxAsks {
			return err
		}
	}
}

// bills reads the bills of a statement.
func (r *Reader) bills(ctx context.Context, s *statement, f func(Bill) error) error {
	if s.req.byTime() {
		return r.timeBills(ctx, s, f)
	}
	keys, n := s.keys(), 0
	alone := s.req.GroupBy == Total
	err := r.lines(ctx, s, s.byKey(), func(row []string) error {
		var b Bill
		for i, k := range keys {
			*b.key(k) = row[i]
		}
		if n++; alone && n > 1 {
			return errMeters(s.req)
		}
		if alone {
			b.Provider, b.Space, b.Customer = s.req.Provider, s.req.Space, s.req.Customer
		}
		var sum numbers
		if err := sum.scan(row[len(keys):]); err != nil {
			return err
		}
		return f(s.req.bill(b, &sum))
	})
	if err == nil && alone && n == 0 {
		return f(s.req.bill(s.req.named(), &numbers{}))
	}
	return err
}

// named is a bill for what the request selects.
func (r *Request) named() Bill {
	return Bill{Meter: r.Meter, Provider: r.Provider, Space: r.Space, Customer: r.Customer}
}

func errMeters(r *Request) error {
	return fmt.Errorf("%w: topic %q has several meters, whose sizes do not add up: name one, or group by meter, space, provider or customer", schemas.ErrRequest, r.Topic)
}

// scan reads numbers from a row of byKey.
func (n *numbers) scan(row []string) error {
	for i, to := range []*big.Int{&n.before, &n.end, &n.usage} {
		if _, ok := to.SetString(row[i], 10); !ok {
			return fmt.Errorf("usage: ClickHouse's answer is %q", row)
		}
	}
	return scanCounts(row[3:], &n.causesBefore, &n.causes, &n.repeats)
}

func scanCounts(row []string, to ...*uint64) (err error) {
	for i := range to {
		if *to[i], err = strconv.ParseUint(row[i], 10, 64); err != nil {
			return fmt.Errorf("usage: ClickHouse's answer is %q: %w", row, err)
		}
	}
	return nil
}

// timeBills reads a bill for each span of time, also of those without a diff.
func (r *Reader) timeBills(ctx context.Context, s *statement, f func(Bill) error) error {
	edges := s.req.edges()
	spans, at := make([]bucket, len(edges)), map[int64]int{}
	for i, edge := range edges {
		spans[i].from, spans[i].to = edge, s.until
		if i+1 < len(edges) {
			spans[i].to = edges[i+1]
		}
		key := edge / dayMs
		if s.req.GroupBy == ByMonth {
			key = int64(schemas.MonthOf(edge * 1e6))
		}
		at[key] = i
	}
	var before big.Int
	named := s.req.named()
	n := 0
	err := r.lines(ctx, s, s.byTime(), func(row []string) error {
		if n++; n > 1 && row[0] != named.Meter {
			return errMeters(s.req)
		}
		named.Meter = row[0]
		key, err := strconv.ParseInt(row[1], 10, 64)
		if err != nil {
			return fmt.Errorf("usage: ClickHouse's answer is %q: %w", row, err)
		}
		var delta, weighted big.Int
		_, ok1 := delta.SetString(row[2], 10)
		_, ok2 := weighted.SetString(row[3], 10)
		i, known := at[key]
		switch {
		case !ok1 || !ok2 || key >= 0 && !known:
			return fmt.Errorf("usage: ClickHouse's answer is %q", row)
		case key < 0:
			before.Set(&delta)
			return nil
		}
		spans[i].delta, spans[i].weighted = delta, weighted
		return scanCounts(row[4:], &spans[i].causes, &spans[i].repeats)
	})
	if err != nil {
		return err
	}
	for i, sum := range running(&before, spans) {
		b := named
		b.From, b.To = time.UnixMilli(spans[i].from).UTC(), time.UnixMilli(spans[i].to).UTC()
		if s.req.after != nil && spans[i].from <= s.req.after.from {
			continue
		}
		if err := f(s.req.bill(b, &sum)); err != nil {
			return err
		}
	}
	return nil
}

// lines runs a statement and calls f with each row of its answer. An error of f ends it.
func (r *Reader) lines(ctx context.Context, s *statement, sql string, f func([]string) error) error {
	var own error
	err := once.Lines(ctx, r.db, sql, s.params, nil, func(row []string) error {
		own = f(row)
		return own
	})
	if err == nil || own != nil || errors.Is(err, once.ErrMoved) {
		return err
	}
	if len(s.snap.shards) == 0 && tables.Classify(err) == tables.Missing {
		return nil // a topic that nothing came to yet: its table is made within seconds
	}
	return fmt.Errorf("usage of topic %q: %w", s.t.Name, err)
}

// utc prints an instant, in Unix ms.
func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00") }
