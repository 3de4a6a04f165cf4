package series

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/query/once/oncetest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// rig is a topic of kind metric whose table is filled by hand.
type rig struct {
	*oncetest.Rig
	read *Reader
	made int
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigOf(t, 1)
}

// newRigOf is newRig with lanes.
func newRigOf(t testing.TB, lanes int) *rig {
	t.Helper()
	r := oncetest.New(t, schemas.Topic{Name: "cpu", Kind: kinds.Metric, Lanes: lanes})
	return &rig{Rig: r, read: New(r.Query)}
}

// point is a row of the table; shard tells shards of its month apart.
type point struct {
	metric, unit, kind string
	labels             map[string]string
	at, start          time.Time
	value              float64
	dist               *Distribution
	buckets            string
	shard              uint64
	made               int // the order in which points were made: the last one counts
	lane               int // of its series; in gives it
}

// in gives points the lanes that a topic's producers give them.
func in(topic *schemas.Topic, points []point) {
	for i := range points {
		p := &points[i]
		e := schemas.Event{Type: p.metric, Attrs: []schemas.Attr{schemas.String(kinds.ColUnit, p.unit)}}
		for key, value := range p.labels {
			e.Attrs = append(e.Attrs, schemas.String(key, value))
		}
		p.lane = schemas.LaneOf(topic, &e, p.at.UnixNano(), "")
	}
}

func (p *point) ref() schemas.ShardRef {
	m := schemas.MonthOf(p.at.UnixNano())
	return schemas.ShardRef{Topic: "cpu", Month: m, ID: schemas.Shard(uint64(p.lane)<<56 | uint64(m)*10 + p.shard)}
}

func (p *point) series() string {
	return p.metric + "|" + p.unit + "|" + labelsText(p.labels)
}

// insert stores points, each shard's as one insert.
func (r *rig) insert(points ...point) {
	r.T.Helper()
	byShard := map[schemas.ShardRef][]point{}
	for _, p := range points {
		byShard[p.ref()] = append(byShard[p.ref()], p)
	}
	for ref, some := range byShard {
		pos := r.Next(ref)
		var b strings.Builder
		fmt.Fprintf(&b, "INSERT INTO %s (ts, id, type, attributes, value, unit, points, start, count, sum, min, max, m2, buckets, month, shard, pos) VALUES ", sql.QuotedTable(r.DB.Database, "cpu"))
		for i, p := range some {
			if i > 0 {
				b.WriteByte(',')
			}
			if p.made == 0 {
				r.made++
				p.made = r.made
			}
			d, start := Distribution{}, int64(0)
			if p.dist != nil {
				d = *p.dist
			}
			if !p.start.IsZero() {
				start = p.start.UnixNano()
			}
			var labels []string
			for _, k := range slices.Sorted(maps.Keys(p.labels)) {
				labels = append(labels, sql.QuoteText(k), sql.QuoteText(p.labels[k]))
			}
			// The second half of the ids falls: only the order of the whole is that of time.
			fmt.Fprintf(&b, "(fromUnixTimestamp64Nano(%d, 'UTC'), '%08x-0000-7000-8000-%012x', %s, map(%s), %g, %s, %s, fromUnixTimestamp64Nano(%d, 'UTC'), %d, %g, %g, %g, %g, %s, %d, %d, %d)",
				p.at.UnixNano(), p.made, 1<<40-p.made, sql.QuoteText(p.metric), strings.Join(labels, ","), p.value, sql.QuoteText(p.unit), sql.QuoteText(p.kind), start,
				d.Count, d.Sum, d.Min, d.Max, d.M2, sql.QuoteText(p.buckets), uint32(ref.Month), uint64(ref.ID), pos)
		}
		r.Exec(b.String())
	}
}

func (r *rig) align(req Request) *Answer {
	r.T.Helper()
	req.Topic = "cpu"
	a, err := r.read.Align(r.T.Context(), req)
	if err != nil {
		r.T.Fatalf("%+v: %v", req, err)
	}
	return a
}

// text is an answer in one line.
func (a *Answer) text() string {
	var b strings.Builder
	for _, g := range a.Groups {
		var labels []string
		for _, k := range slices.Sorted(maps.Keys(g.Labels)) {
			labels = append(labels, k+"="+g.Labels[k])
		}
		fmt.Fprintf(&b, "{%s}%s", strings.Join(labels, ","), g.Unit)
		for _, p := range g.Points {
			if d := p.Distribution; d != nil {
				fmt.Fprintf(&b, " %s (%d, %.12g, %.12g, %.12g, %.12g)", p.Time.Format("15:04"), d.Count, float64(d.Mean), float64(d.M2), float64(d.Min), float64(d.Max))
			} else {
				fmt.Fprintf(&b, " %s %.12g", p.Time.Format("15:04"), float64(*p.Value))
			}
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func at(t *testing.T, clock string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, "2026-02-01T"+clock+"Z")
	if err != nil {
		t.Fatal(err)
	}
	return v.UTC()
}
