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
	inputtest.Same(t, w.Events, `
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
  value:float 0
  points stale

ts 2026-02-02T02:40:00.123Z
type odd
  value:float 0
  points nan

ts 2026-02-02T02:40:00.124Z
type odd
  value:float 0
  points +inf

ts 2026-02-02T02:40:00.125Z
type odd
  value:float 0
  points -inf
`)
	var refused []string
	for _, r := range w.Refused {
		refused = append(refused, r.Err.Error())
	}
	want := `bad series: it has no label __name__|bad series: the label "a" is there twice|native histograms are not kept: 1 of metric "native"; scrape classic histograms, or drop them by write_relabel_configs`
	if got := strings.Join(refused, "|"); got != want || w.Refused[2].Series != 4 || w.Samples != 7 || w.Histograms != 1 {
		t.Errorf("%d samples, %d histograms, refused %s", w.Samples, w.Histograms, got)
	}
	topic := schemas.NewTopicOf(kinds.Metric, "metrics")
	for i := range w.Events {
		e := &w.Events[i]
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
	if err != nil || len(w.Refused) > 0 || w.Exemplars != 1 {
		t.Fatal(err, w.Refused, w.Exemplars)
	}
	inputtest.Same(t, w.Events, `
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
	if err != nil || len(w.Events) != 1 || len(w.Refused) != 1000 || !strings.Contains(w.Refused[0].Err.Error(), "its labels have more than 65536 bytes") {
		t.Errorf("%d events, %d refused, %v", len(w.Events), len(w.Refused), err)
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
		"not snappy":       {Decode1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, options, ErrWrite},
		"not protobuf":     {Decode1, s2.EncodeSnappy(nil, []byte("\x0a\xff")), options, ErrWrite},
		"odd references":   {Decode2, packed(t, odd), options, ErrWrite},
		"unknown symbol":   {Decode2, packed(t, far), options, ErrWrite},
		"unknown unit":     {Decode2, packed(t, unit), options, ErrWrite},
		"first symbol":     {Decode2, packed(t, first), options, ErrWrite},
		"too large":        {Decode1, packed(t, version1()), Options{MaxBytes: 10, MaxSamples: 10}, ErrTooLarge},
		"events too large": {Decode1, packed(t, version1()), small, ErrTooLarge},
		"too many samples": {Decode1, packed(t, version1()), few, ErrTooLarge},
		"too many series":  {Decode2, packed(t, version2()), few, ErrTooLarge},
		"a series too big": {Decode1, packed(t, long), options, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if w, err := c.decode(c.body, c.o); !errors.Is(err, c.want) || len(w.Events) > 0 {
				t.Errorf("%v, %d events", err, len(w.Events))
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
		if err != nil || len(w.Refused) > 0 || len(w.Events) != w.Samples {
			t.Fatalf("%s: %v, %v", name, err, w.Refused)
		}
		for i := range w.Events {
			names[w.Events[i].Type] = true
			if w.Events[i].Time.Before(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("%s", w.Events[i].Time)
			}
		}
	}
	if !names["up"] {
		t.Errorf("%d metrics, and not up", len(names))
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
		if len(w.Events) != len(w.From) || len(w.Events) > w.Samples || w.Samples > 1000 {
			t.Fatalf("%d events of %d samples", len(w.Events), w.Samples)
		}
		for i := range w.Events {
			if w.Events[i].Type == "" || w.Events[i].Time.IsZero() && w.Events[i].Time.UnixMilli() != time.Time.UnixMilli(time.Time{}) {
				t.Fatalf("%+v", w.Events[i])
			}
		}
	})
}
