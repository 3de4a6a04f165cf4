package remotewrite

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

var options = Options{MaxBytes: 20 << 20, MaxSamples: MaxSamples}

func labelsOf(pairs ...string) (out []prompb.Label) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func packed(t testing.TB, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return s2.EncodeSnappy(nil, raw)
}

const stamp = 1770000000123

// refusal is why a series is not taken.
type refusal struct {
	series int
	err    error
}

// eventsOf are the events of a request, as a topic without descriptors has them.
func eventsOf(w *Write) (events []schemas.Event, refused []refusal) {
	for i := range w.Series {
		s := &w.Series[i]
		e, err := w.Event(s, "")
		if err != nil {
			refused = append(refused, refusal{i, err})
			continue
		}
		for _, p := range w.points[s.from:s.to] {
			pt, word, err := p.point()
			if err == nil {
				e, err = w.Event(s, word)
			}
			if err != nil {
				refused = append(refused, refusal{i, err})
				continue
			}
			events = append(events, schemas.PointOf(e, pt.Time, pt.Value, pt.Start))
		}
	}
	return events, refused
}

// version1 has a series of each sort.
func version1() *prompb.WriteRequest {
	return &prompb.WriteRequest{
		Timeseries: []prompb.TimeSeries{
			{
				Labels:  labelsOf("__name__", "up", "instance", "a:9090", "job", "node", "service", "api", "unit", "x", "label.unit", "y", "empty", ""),
				Samples: []prompb.Sample{{Value: 1, Timestamp: stamp}, {Value: math.Float64frombits(value.StaleNaN), Timestamp: stamp + 1}},
			},
			{Labels: labelsOf("__name__", "odd"), Samples: []prompb.Sample{
				{Value: math.NaN(), Timestamp: stamp}, {Value: math.Inf(1), Timestamp: stamp + 1}, {Value: math.Inf(-1), Timestamp: stamp + 2},
			}},
			{Labels: labelsOf("instance", "b"), Samples: []prompb.Sample{{Value: 1, Timestamp: stamp}}},
			{Labels: labelsOf("__name__", "twice", "a", "1", "a", "2"), Samples: []prompb.Sample{{Value: 1, Timestamp: stamp}}},
			{Labels: labelsOf("__name__", "native"), Histograms: []prompb.Histogram{{Sum: 1, Timestamp: stamp}}},
		},
		Metadata: []prompb.MetricMetadata{{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "up", Help: "h", Unit: "u"}},
	}
}

func TestDecode1(t *testing.T) {
	t.Parallel()
	w, err := Decode1(packed(t, version1()), options)
	if err != nil {
		t.Fatal(err)
	}
	events, bad := eventsOf(&w)
	inputtest.Same(t, events, `
ts 2026-02-02T02:40:00.123Z
service api
type up
  instance a:9090
  job node
  label.unit x
  label.label.unit y
  value:float 1

ts 2026-02-02T02:40:00.124Z
service api
type up
  instance a:9090
  job node
  label.unit x
  label.label.unit y
  points stale
  value:float 0

ts 2026-02-02T02:40:00.123Z
type odd
  points nan
  value:float 0

ts 2026-02-02T02:40:00.124Z
type odd
  points +inf
  value:float 0

ts 2026-02-02T02:40:00.125Z
type odd
  points -inf
  value:float 0
`)
	var refused []string
	for _, r := range bad {
		refused = append(refused, r.err.Error())
	}
	want := `bad series: it has no label __name__|bad series: the label "a" is there twice`
	if got := strings.Join(refused, "|"); got != want || bad[1].series != 3 || w.Samples != 7 || w.Histograms != 1 || w.Series[4].Histograms != 1 {
		t.Errorf("%d samples, %d histograms, refused %s", w.Samples, w.Histograms, got)
	}
	topic := schemas.NewTopicOf(kinds.Metric, "metrics")
	for i := range events {
		e := &events[i]
		if err := topic.Check(e, e.Time.UnixNano(), e.Time.UnixNano()); err != nil {
			t.Errorf("a topic refuses event %d: %v", i, err)
		}
	}
}

// version2 has a counter with a start and a unit, a bucket of a histogram, and a gauge.
func version2() *writev2.Request {
	symbols := writev2.NewSymbolTable()
	ref := func(pairs ...string) (out []uint32) {
		for _, p := range pairs {
			out = append(out, symbols.Symbolize(p))
		}
		return out
	}
	return &writev2.Request{
		Timeseries: []writev2.TimeSeries{
			{
				LabelsRefs: ref("__name__", "sent_bytes_total", "host", "a"), Samples: []writev2.Sample{{Value: 7, Timestamp: stamp, StartTimestamp: stamp - 1000}, {Value: 8, Timestamp: stamp + 1, StartTimestamp: stamp + 9}},
				Metadata: writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, UnitRef: symbols.Symbolize("bytes"), HelpRef: symbols.Symbolize("help")},
			},
			{
				LabelsRefs: ref("__name__", "took_bucket", "le", "+Inf"), Samples: []writev2.Sample{{Value: 3, Timestamp: stamp}},
				Metadata: writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_HISTOGRAM}, Exemplars: []writev2.Exemplar{{Value: 1, Timestamp: stamp}},
			},
			{LabelsRefs: ref("__name__", "quiet", "quantile", "0.5"), Samples: []writev2.Sample{{Value: 0.5, Timestamp: stamp}}, Metadata: writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_SUMMARY}},
			{LabelsRefs: ref("__name__", "unknown"), Samples: []writev2.Sample{{Value: 1, Timestamp: stamp}}},
		},
		Symbols: symbols.Symbols(),
	}
}

func TestDecode2(t *testing.T) {
	t.Parallel()
	w, err := Decode2(packed(t, version2()), options)
	events, refused := eventsOf(&w)
	if err != nil || len(refused) > 0 || w.Exemplars != 1 {
		t.Fatal(err, refused, w.Exemplars)
	}
	inputtest.Same(t, events, `
ts 2026-02-02T02:40:00.123Z
type sent_bytes_total
  host a
  unit bytes
  points cumulative
  value:float 7
  start:time 2026-02-02T02:39:59.123Z

ts 2026-02-02T02:40:00.124Z
type sent_bytes_total
  host a
  unit bytes
  points cumulative
  value:float 8

ts 2026-02-02T02:40:00.123Z
type took_bucket
  le +Inf
  points cumulative
  value:float 3

ts 2026-02-02T02:40:00.123Z
type quiet
  quantile 0.5
  points gauge
  value:float 0.5

ts 2026-02-02T02:40:00.123Z
type unknown
  value:float 1
`)
}

// A long symbol that many labels have is not looked through once for each of them, and the other series stay.
func TestLongSymbol(t *testing.T) {
	t.Parallel()
	r := &writev2.Request{Symbols: []string{"", "__name__", "long", "good", strings.Repeat("é", 1<<20)}, Timeseries: []writev2.TimeSeries{
		{LabelsRefs: []uint32{1, 3}, Samples: []writev2.Sample{{Value: 1, Timestamp: stamp}}},
	}}
	for i := range 100 {
		r.Symbols = append(r.Symbols, strings.Repeat("x", i+1))
	}
	for range 1000 {
		one := writev2.TimeSeries{LabelsRefs: []uint32{1, 2}, Samples: []writev2.Sample{{Value: 1, Timestamp: stamp}}}
		for i := range 100 {
			one.LabelsRefs = append(one.LabelsRefs, uint32(5+i), 4)
		}
		r.Timeseries = append(r.Timeseries, one)
	}
	w, err := Decode2(packed(t, r), Options{MaxBytes: 20 << 20, MaxSamples: MaxSamples})
	events, refused := eventsOf(&w)
	if err != nil || len(events) != 1 || len(refused) != 1000 || !strings.Contains(refused[0].err.Error(), "its labels have more than 65536 bytes") {
		t.Errorf("%d events, %d refused, %v", len(events), len(refused), err)
	}
}

func TestDecodeRefusesTheWhole(t *testing.T) {
	t.Parallel()
	odd := version2()
	odd.Timeseries[0].LabelsRefs = odd.Timeseries[0].LabelsRefs[:3]
	far := version2()
	far.Timeseries[0].LabelsRefs[0] = 99
	first := version2()
	first.Symbols[0] = "x"
	unit := version2()
	unit.Timeseries[3].Metadata.UnitRef = 99
	small, few := options, options
	small.MaxBytes, few.MaxSamples = 300, 2
	long := &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{Labels: labelsOf("__name__", strings.Repeat("x", maxSeriesBytes))}}}
	for name, c := range map[string]struct {
		decode func([]byte, Options) (Write, error)
		body   []byte
		o      Options
		want   error
	}{
		"not snappy":        {Decode1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, options, ErrWrite},
		"not protobuf":      {Decode1, s2.EncodeSnappy(nil, []byte("\x0a\xff")), options, ErrWrite},
		"odd references":    {Decode2, packed(t, odd), options, ErrWrite},
		"unknown symbol":    {Decode2, packed(t, far), options, ErrWrite},
		"unknown unit":      {Decode2, packed(t, unit), options, ErrWrite},
		"first symbol":      {Decode2, packed(t, first), options, ErrWrite},
		"too large":         {Decode1, packed(t, version1()), Options{MaxBytes: 10, MaxSamples: 10}, ErrTooLarge},
		"samples too large": {Decode1, packed(t, version1()), small, ErrTooLarge},
		"too many samples":  {Decode1, packed(t, version1()), few, ErrTooLarge},
		"too many series":   {Decode2, packed(t, version2()), few, ErrTooLarge},
		"a series too big":  {Decode1, packed(t, long), options, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if w, err := c.decode(c.body, c.o); !errors.Is(err, c.want) || len(w.Series) > 0 {
				t.Errorf("%v, %d series", err, len(w.Series))
			}
		})
	}
}

// Requests that a real Prometheus sent.
func TestDecodeRecorded(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, name := range []string{"prometheus-remote-write.1", "prometheus-remote-write.2"} {
		w, err := Decode1(inputtest.Recorded(t, name).Body, options)
		events, refused := eventsOf(&w)
		if err != nil || len(refused) > 0 || len(events) != w.Samples {
			t.Fatalf("%s: %v, %v", name, err, refused)
		}
		for i := range events {
			names[events[i].Type] = true
			if events[i].Time.Before(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("%s", events[i].Time)
			}
		}
	}
	if !names["up"] {
		t.Errorf("%d metrics, and not up", len(names))
	}
}

// A series says the same whatever its samples are, and what comes between its labels; another one says something else.
func TestSaid(t *testing.T) {
	t.Parallel()
	field := func(b []byte, number protowire.Number, m interface{ Marshal() ([]byte, error) }) []byte {
		raw, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), raw)
	}
	a, b := &prompb.Label{Name: "__name__", Value: "up"}, &prompb.Label{Name: "job", Value: "node"}
	one := func(value float64) *prompb.Sample { return &prompb.Sample{Value: value, Timestamp: stamp} }
	together := field(field(field(nil, labelsOf1, a), labelsOf1, b), samplesOf1, one(1))
	apart := field(field(field(nil, labelsOf1, a), samplesOf1, one(2)), labelsOf1, b)
	after := field(field(field(nil, samplesOf1, one(3)), labelsOf1, a), labelsOf1, b)
	other := field(field(field(nil, labelsOf1, b), labelsOf1, a), samplesOf1, one(4))
	var body []byte
	for _, series := range [][]byte{together, apart, after, other} {
		body = protowire.AppendBytes(protowire.AppendTag(body, seriesOf1, protowire.BytesType), series)
	}
	w, err := Decode1(s2.EncodeSnappy(nil, body), options)
	if err != nil || len(w.Series) != 4 {
		t.Fatal(err, len(w.Series))
	}
	said := string(w.Series[0].Said)
	if string(w.Series[1].Said) != said || string(w.Series[2].Said) != said || string(w.Series[3].Said) == said {
		t.Errorf("series say %q, %q, %q, %q", said, w.Series[1].Said, w.Series[2].Said, w.Series[3].Said)
	}
	events, refused := eventsOf(&w)
	if len(events) != 4 || len(refused) > 0 {
		t.Fatal(events, refused)
	}
	for i := range events {
		if v, _ := events[i].Attrs[1].AsFloat64(); v != float64(i+1) || events[i].Type != "up" {
			t.Errorf("sample %d is %+v", i, events[i])
		}
	}
	// Of version 2.0 the numbers of symbols differ between requests, and unit and type tell series apart.
	request := func(more []string, unit, labels string, kind writev2.Metadata_MetricType) string {
		symbols := writev2.NewSymbolTable()
		for _, m := range more {
			symbols.Symbolize(m)
		}
		refs := []uint32{symbols.Symbolize("__name__"), symbols.Symbolize("up"), symbols.Symbolize("job"), symbols.Symbolize(labels)}
		w, err := Decode2(packed(t, &writev2.Request{Timeseries: []writev2.TimeSeries{
			{LabelsRefs: refs, Samples: []writev2.Sample{{Value: 1, Timestamp: stamp}}, Metadata: writev2.Metadata{Type: kind, UnitRef: symbols.Symbolize(unit)}},
		}, Symbols: symbols.Symbols()}), options)
		if err != nil {
			t.Fatal(err)
		}
		return string(w.Series[0].Said)
	}
	gauge, counter := writev2.Metadata_METRIC_TYPE_GAUGE, writev2.Metadata_METRIC_TYPE_COUNTER
	if request(nil, "s", "a", gauge) != request([]string{"x", "y"}, "s", "a", gauge) {
		t.Error("the same series of version 2.0 says something else")
	}
	all := map[string]bool{}
	for _, said := range []string{request(nil, "s", "a", gauge), request(nil, "b", "a", gauge), request(nil, "s", "b", gauge), request(nil, "s", "a", counter), request(nil, "", "a", gauge)} {
		all[said] = true
	}
	if len(all) != 5 {
		t.Errorf("5 series say %d things", len(all))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(packed(f, version1()), true)
	f.Add(packed(f, version2()), false)
	f.Fuzz(func(t *testing.T, body []byte, first bool) {
		decode := Decode2
		if first {
			decode = Decode1
		}
		w, err := decode(body, Options{MaxBytes: 1 << 20, MaxSamples: 1000})
		if err != nil && !errors.Is(err, ErrWrite) && !errors.Is(err, ErrTooLarge) {
			t.Fatal(err)
		}
		events, _ := eventsOf(&w)
		if len(events) > w.Samples || w.Samples > 1000 || len(w.Series) > 1000 {
			t.Fatalf("%d events of %d samples", len(events), w.Samples)
		}
		for i := range events {
			if events[i].Type == "" || events[i].Time.IsZero() {
				t.Fatalf("%+v", events[i])
			}
		}
	})
}
