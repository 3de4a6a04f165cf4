package faults

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// measured is a topic of kind metric in stages.
type measured struct {
	*staged
	points *series.Reader // lives through all stages, with what it remembers
	real   []realSeries   // absent without the files
	// rows were accepted, of which so many are points that count.
	rows, count int
	gone        bool // the tenant was erased
}

// TestSeriesUnderKills crosses the acceptance of kind metric with what may happen to it. Known points, each sent three
// times and shuffled, as events and as JSON, one of them four minutes late, some corrected, and two real series sent twice
// with bad points among them, are aligned and reduced in each stage while router, sink, rollups and the engine are killed in
// turn. Every value is exact: once all is stored, while it is derived, when lists and marks were lost, a partition too,
// after rebuilds, in a second topic into which it is replayed, and after a tenant was erased. ALMANAC_SERIES_KILLS
// kills in each stage: four kill each part once.
func TestSeriesUnderKills(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	topic := schemas.Topic{Name: "cpu", Kind: kinds.Metric, Lanes: 2, Rotate: schemas.Rotation{Rows: 10_000}}
	m := &measured{staged: stagedTopic(ctx, t, topic, number("ALMANAC_SERIES_KILLS", 1)), real: realSeriesOf(t)}
	m.points = series.New(m.read)
	m.answers, m.counted, m.bad = m.aligned, m.allCounted, badPoints
	if m.real == nil {
		t.Log("no folder shared/data: without real series")
	}
	m.run([]stage{
		{"sent", m.send},
		{"late", m.late},
		{"derived", m.derive},
		{"lists and marks lost", m.loseLists},
		{"partition lost, repaired", m.repair},
		{"rebuilt", func() { m.rebuild("cpu") }},
		{"replayed", m.replay},
		{"replayed and rebuilt", func() { m.rebuild(copyTopic) }},
		{"erased", m.eraseTenant},
		{"erased and rebuilt", func() { m.rebuild("cpu") }},
	})
}

// send sends all points but the late one while parts are killed.
func (m *measured) send() {
	m.t.Helper()
	written := make(chan error, 1)
	go func() { written <- errors.Join(m.publish(m.realEvents()...), m.publish(m.realEvents()...)) }()
	var order []func()
	for i := range badPoints {
		order = append(order, func() { m.badPoint(i) })
	}
	for range meterTimes {
		for _, p := range examples() {
			order = append(order, func() { m.one(&p) })
			m.rows++
		}
	}
	m.shuffled(len(order), func(i int) { order[i]() })
	m.rows, m.count = m.rows+1, len(examples())+1 // the good line among bad ones
	for range meterTimes {
		for _, v := range []float64{3, 1, 2} {
			if err := m.publish(made(metric.Point{Name: "corrected", Value: v, Time: clock("12:00:30")}.Event())); err != nil {
				m.t.Fatal(err)
			}
			m.rows++
		}
	}
	m.count++
	edge := made(metric.Point{Name: "edge", Time: clock("12:05:00")}.Event())
	edge.Attrs[0] = schemas.Float64(kinds.ColValue, math.NaN()) // as a program could that makes events by hand
	if err := m.publish(edge); !errors.Is(err, schemas.ErrValue) {
		m.t.Errorf("NaN: %v", err)
	}
	if err := <-written; err != nil {
		m.t.Fatal(err)
	}
	for i := range m.real {
		m.rows, m.count = m.rows+2*len(m.real[i].points), m.count+len(m.real[i].values)
	}
	m.heal(true)
	m.stored("cpu")
	m.one(lateExample()) // of the answers from here on it is a part
	m.rows, m.count = m.rows+1, m.count+1
	m.stored("cpu")
}

// late sends the late point again.
func (m *measured) late() {
	m.t.Helper()
	m.shuffled(meterTimes-1, func(int) { m.one(lateExample()); m.rows++ })
	m.heal(true)
	m.stored("cpu")
}

// loseLists takes what is derived away from under its readers: answers are the same, and it is derived again.
func (m *measured) loseLists() {
	m.t.Helper()
	m.exec("ALTER TABLE " + m.table("cpu", schemas.DerivedSeries) + " DELETE WHERE 1 SETTINGS mutations_sync = 2")
	m.exact("the list lost")
	m.derive()
	if err := derived.Of(m.db).DropAll(m.ctx, &m.topic, m.reg.DerivedDropper("cpu")); err != nil {
		m.t.Fatal(err)
	}
	m.exact("all derived lost")
	m.derive()
}

// eraseTenant erases one from both topics.
func (m *measured) eraseTenant() {
	m.t.Helper()
	m.erase("t-9", meterTimes, map[string]string{schemas.DerivedSeries: "user_id = 't-9'"}, func() { m.gone = true })
}

// allCounted checks what verify counts, and how many points SQL has, once all of a topic is derived.
func (m *measured) allCounted(when, topic string) {
	m.t.Helper()
	rows, count := m.rows, m.count
	if m.gone {
		rows, count = rows-meterTimes, count-1
	}
	m.verified(when, topic, uint64(rows-count))
	if n, err := m.SQL.Number(m.ctx, "SELECT count() FROM %s", m.table(topic+schemas.ViewOnce, "")); err != nil || n != uint64(count) {
		m.t.Errorf("%s, topic %s: %d points count, %v, want %d", when, topic, n, err, count)
	}
}

// one sends a point, as an event or as JSON.
func (m *measured) one(p *metric.Point) {
	m.t.Helper()
	if m.rnd.IntN(2) == 0 {
		if err := m.publish(made(p.Event())); err != nil {
			m.t.Fatal(err)
		}
		return
	}
	var rest strings.Builder
	for i := range p.Labels { // in the other order
		l := &p.Labels[len(p.Labels)-1-i]
		_, _ = fmt.Fprintf(&rest, ",%q:%q", l.Key, l.Text())
	}
	if !p.Start.IsZero() {
		_, _ = fmt.Fprintf(&rest, `,"start":%q`, p.Start.Format(time.RFC3339Nano))
	}
	m.json(p.Time, fmt.Sprintf(`{"ts":%q,"type":%q,"value":%g,"unit":%q,"points":%q,"user_id":%q%s}`, p.Time.Format(time.RFC3339Nano), p.Name, p.Value, p.Unit, p.Points, p.Tenant, rest.String()))
}
