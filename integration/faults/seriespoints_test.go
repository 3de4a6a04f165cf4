package faults

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// clock is a time of the day of the examples.
func clock(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, "2026-02-01T"+text+"Z")
	if err != nil {
		panic(err) // a constant
	}
	return at
}

// examples are the points of the acceptance, without the late one.
func examples() (out []metric.Point) {
	add := func(name, unit, at string, value float64, labels ...schemas.Attr) *metric.Point {
		out = append(out, metric.Point{Name: name, Unit: unit, Value: value, Time: clock(at), Labels: labels})
		return &out[len(out)-1]
	}
	host, region := schemas.String("host", "a"), schemas.String("region", "eu")
	add("cpu", "%", "12:04:24", 123, host, region)
	add("cpu", "%", "12:04:54", 98, host, region)
	add("cpu", "%", "12:05:24", 121, host, region)
	add("cpu", "%", "12:06:24", 105, host, region)
	add("cpu", "%", "12:06:54", 106, host, region)
	add("edge", "", "12:05:00", 1)
	add("edge", "", "12:05:00.001", 2)
	project := schemas.String("project", "p")
	add("pair", "", "12:04:24", 123, project, schemas.String("s", "A"))
	add("pair", "", "12:04:54", 98, project, schemas.String("s", "A"))
	add("pair", "", "12:04:24", 50, project, schemas.String("s", "B"))
	for i, v := range []float64{100, 160, 20, 50} {
		p := add("requests", "1", "12:01:00", v)
		p.Points, p.Time, p.Start = metric.Cumulative, p.Time.Add(time.Duration(i)*time.Minute), clock("12:00:00")
		if i >= 2 {
			p.Start = clock("12:02:00")
		}
	}
	add("leaving", "", "12:00:30", 9).Tenant = "t-9"
	return out
}

// lateExample comes when points four minutes after it are stored.
func lateExample() *metric.Point {
	return &metric.Point{Name: "cpu", Unit: "%", Value: 103, Time: clock("12:05:54"), Labels: []schemas.Attr{schemas.String("host", "a"), schemas.String("region", "eu")}}
}

// badPoints are refused, each for a reason of its own. The first comes with a good line, the last is a frame.
var badPoints = []badLine{
	{`"value":"NaN"`, "bad-value", `value is "NaN", it must be a number`},
	{`"host":"a"`, "bad-value", "value is missing, and so is count"},
	{`"value":1,"points":"gage"`, "bad-value", `points is "gage", it must be one of`},
	{`"count":3,"sum":6,"min":1,"max":3,"m2":2,"buckets":{"bounds":[2],"counts":[2,2]}`, "bad-value", "the counts of buckets add up to 4, count is 3"},
	{`"value":1,"start":"2026-02-02T00:00:00Z"`, "bad-value", "start is 2026-02-02T00:00:00Z, later than ts"},
	{`"value":9007199254740993`, "bad-value", "value is 9007199254740993"},
	{"", "bad-labels", `has the attribute "b" before "a"`},
}

// badPoint sends what is not a point.
func (m *measured) badPoint(n int) {
	m.t.Helper()
	at := clock("12:09:00")
	line := `{"ts":"` + at.Format(time.RFC3339) + `","type":"edge",` + badPoints[n].rest + "}"
	switch n {
	case 0:
		line += "\n" + `{"ts":"` + at.Format(time.RFC3339) + `","type":"among","value":7}`
	case len(badPoints) - 1:
		m.unsorted(at)
		return
	}
	m.json(at, line)
}

// unsorted sends a frame that no producer makes: its labels are not in their order.
func (m *measured) unsorted(at time.Time) {
	m.t.Helper()
	plain := schemas.NewTopic("cpu", m.topic.Fields...) // the same columns, and no rules
	b := frame.NewBuilder(&plain)
	e := made(metric.Point{Name: "edge", Value: 1, Labels: []schemas.Attr{schemas.String("b", "1"), schemas.String("a", "2")}}.Event())
	b.Append(&e, at.UnixNano(), schemas.NewID(at.UnixNano()))
	f, payload := b.Encode()
	f.Producer, f.Seq = "0123456789abcdef", 1
	msg := nats.NewMsg(schemas.EventsSubject("cpu", schemas.MonthOf(at.UnixNano()), 0))
	f.SetHeaders(msg.Header)
	msg.Data = payload
	if _, err := m.reg.JetStream().PublishMsg(m.ctx, msg); err != nil {
		m.t.Fatal(err)
	}
}

// realSeries is a series of the Numenta Anomaly Benchmark. Some of its instants come twice: the later value counts.
type realSeries struct {
	name   string
	points []metric.Point
	values map[time.Time]float64
	twice  int // instants that come again with another value
}

// realSeriesOf reads them from shared/data; nil where the folder is absent.
func realSeriesOf(t *testing.T) (out []realSeries) {
	t.Helper()
	if inputtest.DataDir(t) == "" {
		return nil
	}
	for _, of := range []struct {
		name                string
		sent, points, twice int
	}{{"machine_temperature_system_failure", 22695, 22683, 12}, {"ec2_disk_write_bytes_1ef3de", 4730, 4719, -1}} {
		records, err := csv.NewReader(bytes.NewReader(inputtest.File(t, "metrics/"+of.name+".csv"))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		s := realSeries{name: of.name, values: map[time.Time]float64{}}
		for _, r := range records[1:] {
			at, err := time.Parse(time.DateTime, r[0])
			if err != nil {
				t.Fatal(err)
			}
			v, err := strconv.ParseFloat(r[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			if was, again := s.values[at]; again && was != v {
				s.twice++
			}
			s.values[at] = v
			s.points = append(s.points, metric.Point{Name: of.name, Value: v, Points: metric.Gauge, Time: at})
		}
		if len(s.points) != of.sent || len(s.values) != of.points || of.twice >= 0 && s.twice != of.twice {
			t.Fatalf("%s has %d rows of %d instants, %d with another value", of.name, len(s.points), len(s.values), s.twice)
		}
		out = append(out, s)
	}
	return out
}

// realEvents are all of them, each series in its order.
func (m *measured) realEvents() (out []schemas.Event) {
	for i := range m.real {
		for j := range m.real[i].points {
			out = append(out, made(m.real[i].points[j].Event()))
		}
	}
	return out
}
