package series

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Limits of a list.
const (
	DefaultList = 500
	MaxList     = 10_000
)

// Series is what tells a series apart, and when it has points.
type Series struct {
	Metric  string            `json:"metric"`
	Service string            `json:"service,omitempty"`
	Tenant  string            `json:"user_id,omitempty"`
	Unit    string            `json:"unit,omitempty"`
	Labels  map[string]string `json:"labels"`
	// Points are the kinds of its points that are known.
	Points []string  `json:"points,omitempty"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

// ListRequest asks which series a topic has.
type ListRequest struct {
	Topic string
	// Metric and Where select, as in Request. Empty selects all.
	Metric, Where string
	// From (inclusive) and To (exclusive) bound when a series has points. Zero is open.
	From, To time.Time
	// Limit is 1 to MaxList; 0 means DefaultList.
	Limit int
}

func (q *ListRequest) check() error {
	if err := schemas.ValidateTopicName(q.Topic); err != nil {
		return bad("%v", err)
	}
	if q.Limit == 0 {
		q.Limit = DefaultList
	}
	if q.Limit < 1 || q.Limit > MaxList {
		return bad("limit is %d, it must be 1 to %d", q.Limit, MaxList)
	}
	if q.From.IsZero() {
		q.From = time.Unix(0, 0)
	}
	if q.To.IsZero() {
		q.To = time.Unix(0, 1<<62)
	}
	if !q.From.Before(q.To) {
		return bad("from (%s) must lie before to (%s)", q.From.UTC().Format(time.RFC3339Nano), q.To.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// List reads the series of a request, by metric and labels, and reports whether there are more.
func (r *Reader) List(ctx context.Context, q ListRequest) (list []Series, more bool, err error) {
	err = r.listing(ctx, &q, func(s *selection) error {
		list = []Series{}
		statement := sql.SeriesList{Listed: s.listed(), Where: s.condition(), Limit: int64(q.Limit) + 1}.SQL()
		return r.lines(ctx, statement, s.params, func(row []string) error {
			one, err := readSeries(row)
			list = append(list, one)
			return err
		})
	})
	if err == nil && len(list) > q.Limit {
		return list[:q.Limit], true, nil
	}
	return list, false, err
}

// listing runs a read of the list.
func (r *Reader) listing(ctx context.Context, q *ListRequest, run func(*selection) error) error {
	if err := q.check(); err != nil {
		return err
	}
	return r.ask(ctx, q.Topic, func(snap *snapshot) error {
		s, err := q.selection(snap)
		if err != nil {
			return err
		}
		if err := snap.Fill(ctx, r.db); err != nil {
			return err
		}
		if err := r.list(ctx, snap); err != nil {
			return err
		}
		return run(s)
	})
}

// selection is what a request that was checked selects. A selection's points lie after from, up to to.
func (q *ListRequest) selection(snap *snapshot) (*selection, error) {
	return selectSeries(snap, q.Metric, q.Where, q.From.Add(-1), q.To.Add(-1))
}

func readSeries(row []string) (s Series, err error) {
	s = Series{Metric: row[0], Service: row[1], Tenant: row[2], Unit: row[3]}
	if err = json.Unmarshal([]byte(row[4]), &s.Labels); err == nil {
		err = json.Unmarshal([]byte(row[5]), &s.Points)
	}
	for i, to := range []*time.Time{&s.First, &s.Last} {
		ns, e := strconv.ParseInt(row[6+i], 10, 64)
		if err == nil {
			err = e
		}
		*to = time.Unix(0, ns).UTC()
	}
	if err != nil {
		err = fmt.Errorf("ClickHouse's answer is %q: %w", row, err)
	}
	return s, err
}

// Counted is how many series have something.
type Counted struct {
	Name string `json:"name"`
	// Values is how many values a label has. 0 where a value itself is counted.
	Values uint64 `json:"values,omitempty"`
	Series uint64 `json:"series"`
}

// Metrics counts the series of each metric, the most first.
func (r *Reader) Metrics(ctx context.Context, q ListRequest) ([]Counted, bool, error) {
	return r.counts(ctx, &q, func(s *selection) sql.SeriesCounts {
		return sql.SeriesCounts{Listed: s.listed(), Where: s.condition(), NameSQL: "type"}
	})
}

// Labels counts the values and series of each label, the most first.
func (r *Reader) Labels(ctx context.Context, q ListRequest) ([]Counted, bool, error) {
	return r.counts(ctx, &q, func(s *selection) sql.SeriesCounts {
		return sql.SeriesCounts{Listed: s.listed(), Where: s.condition()}
	})
}

// Values counts the series of each value of a label, or of service, user_id or unit, the most
// first.
func (r *Reader) Values(ctx context.Context, q ListRequest, label string) ([]Counted, bool, error) {
	if label == "" {
		return nil, false, bad("values are of a label: name it")
	}
	return r.counts(ctx, &q, func(s *selection) sql.SeriesCounts {
		value := labelSQL(label, s.params)
		has := "mapContains(attributes, {label:String})"
		if s.params["label"] = filter.ParamString(label); value == sql.QuoteName(label) {
			has = "1"
		}
		return sql.SeriesCounts{Listed: s.listed(), Where: has + " AND (" + s.condition() + ")", NameSQL: value}
	})
}

// counts runs a statement that of makes of the selection, again with each snapshot (ask).
func (r *Reader) counts(ctx context.Context, q *ListRequest, of func(*selection) sql.SeriesCounts) (out []Counted, more bool, err error) {
	err = r.listing(ctx, q, func(s *selection) error {
		out = []Counted{}
		statement := of(s)
		statement.Limit = q.Limit + 1
		return r.lines(ctx, statement.SQL(), s.params, func(row []string) error {
			c := Counted{Name: row[0]}
			var err error
			if c.Values, err = strconv.ParseUint(row[1], 10, 64); err == nil {
				c.Series, err = strconv.ParseUint(row[2], 10, 64)
			}
			out = append(out, c)
			return err
		})
	})
	if err == nil && len(out) > q.Limit {
		return out[:q.Limit], true, nil
	}
	return out, false, err
}
