package prometheus

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/query/once/oncetest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// rig is a topic of kind metric whose table is filled by hand, as remote write fills it.
type rig struct {
	*oncetest.Rig
	store *Store
	made  int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := oncetest.New(t, schemas.Topic{Name: "metrics", Kind: kinds.Metric})
	return &rig{Rig: r, store: New(r.Query)}
}

// sample is a row of the table.
type sample struct {
	labels labels.Labels
	unit   string
	ms     int64
	v      float64
}

// insert stores samples as one insert a month. Later ones were made later.
func (r *rig) insert(samples ...sample) {
	r.T.Helper()
	byShard := map[schemas.ShardRef][]sample{}
	for _, s := range samples {
		m := schemas.MonthOf(s.ms * 1e6)
		ref := schemas.ShardRef{Topic: "metrics", Month: m, ID: schemas.Shard(m)}
		byShard[ref] = append(byShard[ref], s)
	}
	for ref, some := range byShard {
		pos := r.Next(ref)
		var b strings.Builder
		fmt.Fprintf(&b, "INSERT INTO %s (ts, id, type, service, user_id, attributes, value, unit, points, month, shard, pos) VALUES ", sql.QuotedTable(r.DB.Database, "metrics"))
		for i, s := range some {
			if i > 0 {
				b.WriteByte(',')
			}
			r.made++
			var attrs []string
			s.labels.Range(func(l labels.Label) {
				if !slices.Contains([]string{nameLabel, "service", "user_id"}, l.Name) {
					attrs = append(attrs, kinds.LabelKey(l.Name)+"\x00"+l.Value)
				}
			})
			slices.Sort(attrs)
			var pairs []string
			for _, a := range attrs {
				name, v, _ := strings.Cut(a, "\x00")
				pairs = append(pairs, sql.QuoteText(name), sql.QuoteText(v))
			}
			v, word := s.v, ""
			switch {
			case value.IsStaleNaN(v):
				v, word = 0, kinds.PointsStale
			case math.IsNaN(v):
				v, word = 0, kinds.PointsNaN
			case math.IsInf(v, 1):
				v, word = 0, kinds.PointsInf
			case math.IsInf(v, -1):
				v, word = 0, kinds.PointsNegInf
			}
			fmt.Fprintf(&b, "(fromUnixTimestamp64Milli(%d, 'UTC'), '%08x-0000-7000-8000-%012x', %s, %s, %s, map(%s), %v, %s, '%s', %d, %d, %d)", s.ms, r.made, 1<<40-r.made,
				sql.QuoteText(s.labels.Get(nameLabel)), sql.QuoteText(s.labels.Get("service")), sql.QuoteText(s.labels.Get("user_id")), strings.Join(pairs, ","), v, sql.QuoteText(s.unit), word, uint32(ref.Month), uint64(ref.ID), pos)
		}
		r.Exec(b.String())
	}
}

// exec runs a query and returns its result as text.
func (r *rig) exec(q Query) string {
	r.T.Helper()
	q.Topic = "metrics"
	var text string
	err := r.store.Exec(r.T.Context(), &q, func(result *promql.Result, warning string) error {
		if result.Err != nil || warning != "" {
			r.T.Fatalf("%s: %v, %s", q.Expr, result.Err, warning)
		}
		text = result.String()
		return nil
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return text
}

func instant(expr string, at time.Time) Query { return Query{Expr: expr, Start: at} }
