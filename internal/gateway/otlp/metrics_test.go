package otlp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// points decodes a body of which nothing may be refused, and holds its events to the rules of
// the kind.
func points(t *testing.T, body []byte, isJSON bool) (all []schemas.Event) {
	t.Helper()
	topic, err := schemas.Topic{Name: "metrics", Kind: kinds.Metric}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	err = DecodeMetrics(body, isJSON, nil, func(events []schemas.Event, err error) error {
		for i := range events {
			if err == nil {
				err = topic.Check(&events[i], events[i].Time.UnixNano(), events[i].Time.UnixNano())
			}
		}
		all = append(all, events...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRecordedMetrics(t *testing.T) {
	t.Parallel()
	got := points(t, inputtest.Recorded(t, "telemetrygen-metrics-otlp-http.1").Body, false)
	if len(got) != 3 || got[2].Type != "gen" || got[2].Service != "telemetrygen" {
		t.Fatalf("%+v", got)
	}
	inputtest.Same(t, points(t, inputtest.RecordedBytes(t, "../otlp/metrics.json"), true), `
ts 2018-12-13T14:51:00.3Z
service my.service
type my.counter
  my.counter.attr some value
  scope.name my.library
  scope.version 1.0.0
  scope.my.scope.attribute some scope attribute
  points delta
  unit 1
  start:time 2018-12-13T14:51:00.3Z
  value:float 5

ts 2018-12-13T14:51:00.3Z
service my.service
type my.gauge
  my.gauge.attr some value
  scope.name my.library
  scope.version 1.0.0
  scope.my.scope.attribute some scope attribute
  points gauge
  unit 1
  value:float 10

ts 2018-12-13T14:51:00.3Z
service my.service
type my.histogram
  my.histogram.attr some value
  scope.name my.library
  scope.version 1.0.0
  scope.my.scope.attribute some scope attribute
  points delta
  unit 1
  start:time 2018-12-13T14:51:00.3Z
  count:int 2
  sum:float 2
  min:float 0
  max:float 2
  m2:float 0.5
  buckets {"bounds":[1],"counts":[1,1]}

ts 2018-12-13T14:51:00.3Z
service my.service
type my.exponential.histogram
  my.exponential.histogram.attr some value
  scope.name my.library
  scope.version 1.0.0
  scope.my.scope.attribute some scope attribute
  points delta
  unit 1
  start:time 2018-12-13T14:51:00.3Z
  count:int 3
  sum:float 10
  min:float 0
  max:float 5
  m2:float 13.833333333333334
  buckets {"bounds":[0,4,8],"counts":[1,0,2,0]}
`)
}

var at = time.Date(2026, 2, 1, 12, 0, 0, 7, time.UTC)

// Buckets of an exponential histogram have the bounds that the specification gives them.
func TestExponentialBuckets(t *testing.T) {
	t.Parallel()
	many := make([]uint64, 4*maxSide)
	for i := range many {
		many[i] = 1
	}
	for name, c := range map[string]struct {
		scale              int32
		positive, negative side
		threshold          float64
		zeros              uint64
		want               string
	}{
		"both sides":      {0, side{0, []uint64{1, 2}}, side{1, []uint64{3}}, 0.5, 4, "{[-4 -2 -0.5 0.5 1 2 4] [0 3 0 4 0 1 2 0]}"},
		"half steps":      {1, side{-2, []uint64{0, 1, 0}}, side{}, 0, 0, "{[0.7071067811865475 1] [0 1 0]}"},
		"wide steps":      {-2, side{-1, []uint64{1, 1}}, side{}, 0, 1, "{[0 0.0625 1 16] [1 0 1 1 0]}"},
		"beyond a number": {0, side{1022, []uint64{1, 1, 1}}, side{1023, []uint64{5}}, 0, 0, fmt.Sprintf("{[%v %v %v] [5 0 1 2]}", -math.Exp2(1023), math.Exp2(1022), math.Exp2(1023))},
		"below a number":  {0, side{-1080, []uint64{1, 2}}, side{}, 0, 0, "{[0] [3 0]}"},
		"nothing":         {0, side{}, side{}, 0, 0, "{[] [0]}"},
	} {
		if got := fmt.Sprint(explicit(c.scale, c.positive, c.negative, c.threshold, c.zeros)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	b := explicit(8, side{-3, many}, side{}, 0, 7)
	if len(b.Bounds) > 2*maxSide || b.Sum() != uint64(len(many))+7 {
		t.Errorf("%d bounds, %d values", len(b.Bounds), b.Sum())
	}
}

// deepMetric is a body with an attribute that nests so deep.
func deepMetric(depth int, way ...protowire.Number) []byte {
	value := []byte{0x10, 1}
	for range depth {
		inner := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), value)
		value = protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), inner)
	}
	for _, field := range append([]protowire.Number{2}, way...) {
		value = protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), value)
	}
	return value
}

func TestDeepMetrics(t *testing.T) {
	t.Parallel()
	for name, way := range map[string][]protowire.Number{
		"resource": {1, 1, 1}, "scope": {3, 1, 2, 1}, "metadata": {12, 2, 2, 1}, "gauge": {7, 1, 5, 2, 2, 1}, "sum": {7, 1, 7, 2, 2, 1},
		"histogram": {9, 1, 9, 2, 2, 1}, "exponential": {1, 1, 10, 2, 2, 1}, "summary": {7, 1, 11, 2, 2, 1},
		"exemplar": {7, 5, 1, 5, 2, 2, 1}, "exemplar of a histogram": {7, 8, 1, 9, 2, 2, 1}, "exemplar of an exponential one": {7, 11, 1, 10, 2, 2, 1},
	} {
		for depth, good := range map[int]bool{0: true, maxDepth: true, 100: false} {
			err := DecodeMetrics(deepMetric(depth, way...), false, nil, func([]schemas.Event, error) error { return nil })
			if good != (err == nil) || !good && !errors.Is(err, ErrMetrics) {
				t.Errorf("%s of depth %d: %v", name, depth, err)
			}
		}
	}
}

// A second user of a point is under the rule of user_id.
func TestSecondUserOfAPoint(t *testing.T) {
	t.Parallel()
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("logins")
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	p.SetIntValue(1)
	for where, attrs := range map[string]pcommon.Map{"resource": rm.Resource().Attributes(), "scope": rm.ScopeMetrics().At(0).Scope().Attributes(), "point": p.Attributes()} {
		for _, name := range []string{"user.id", "user_id", "enduser.id"} {
			attrs.PutStr(name, "secret "+name+" of the "+where)
		}
	}
	p.Attributes().PutEmptyMap("enduser").PutStr("id", "secret of a map")
	body, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	topic, err := schemas.Topic{Name: "metrics", Kind: kinds.Metric, PII: []schemas.Private{{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}}}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	err = DecodeMetrics(body, false, &topic, func(events []schemas.Event, err error) error {
		if err != nil || len(events) != 1 {
			t.Fatalf("%v %v", events, err)
		}
		users := 0
		for _, a := range events[0].Attrs {
			if strings.HasPrefix(a.Text(), "secret") {
				if users++; !strings.HasPrefix(a.Key, schemas.ColUserID+".") {
					t.Errorf("%s is not under the rule of user_id", a.Key)
				}
			}
		}
		if users != 9 {
			t.Errorf("%d labels name a user, want 9: %+v", users, events[0])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Attributes without a name and a value take two bytes each, and some hundred once decoded.
func TestEmptyAttributesOfPoints(t *testing.T) {
	t.Parallel()
	point := bytes.Repeat([]byte{7<<3 | 2, 0}, 1<<20) // NumberDataPoint.attributes
	body := point
	for _, field := range []protowire.Number{1, 5, 2, 2, 1} { // data_points, gauge, metrics, scope_metrics, resource_metrics
		body = tagged(field, body)
	}
	err := DecodeMetrics(body, false, nil, func([]schemas.Event, error) error { return nil })
	if !errors.Is(err, ErrMetrics) || !errors.Is(err, errManyMessages) {
		t.Errorf("%v", err)
	}
}

// A whole number above 2^53 is the float64 that the same number as a double is, and is counted.
func TestLargeWholeNumbers(t *testing.T) {
	t.Parallel()
	metrics := pmetric.NewMetrics()
	m := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("container.cpu.usage.total")
	list := m.SetEmptySum().DataPoints()
	m.Sum().SetIsMonotonic(true)
	m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	numbers := []int64{1 << 53, 1<<53 + 1, 1<<53 + 2, math.MaxInt64, math.MinInt64, -1<<53 - 1, 7}
	for _, n := range numbers {
		p := list.AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetIntValue(n)
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	got := points(t, body, false)
	if len(got) != len(numbers) {
		t.Fatalf("%d points, want %d", len(got), len(numbers))
	}
	for i, ev := range got {
		value := ev.Attrs[len(ev.Attrs)-1]
		if v, ok := value.AsFloat64(); value.Key != kinds.ColValue || !ok || v != float64(numbers[i]) {
			t.Errorf("%d: %s is %s", numbers[i], value.Key, value.Text())
		}
	}
	if n, err := decodeMetrics(body, false, nil, nil, func([]schemas.Event, error) error { return nil }); err != nil || n.rounded != 3 {
		t.Errorf("%d points are rounded, want 3 (%v)", n.rounded, err)
	}
}

func FuzzDecodeMetrics(f *testing.F) {
	body, _ := sorts(true).MarshalProto()
	f.Add(body, false)
	body, _ = sorts(true).MarshalJSON()
	f.Add(body, true)
	f.Add(deepMetric(20, 7, 1, 5, 2, 2, 1), false)
	topic := schemas.NewTopicOf(kinds.Metric, "metrics")
	f.Fuzz(func(t *testing.T, body []byte, isJSON bool) {
		_ = DecodeMetrics(body, isJSON, nil, func(events []schemas.Event, err error) error {
			if err == nil && len(events) == 0 {
				t.Fatal("a point without an event")
			}
			for i := range events {
				_ = topic.Check(&events[i], events[i].Time.UnixNano(), events[i].Time.UnixNano())
			}
			return nil
		})
	})
}
