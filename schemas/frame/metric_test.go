package frame

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// describedTopic has a metric of each type, and takes no others.
var describedTopic = func() schemas.Topic {
	t, err := schemas.Topic{Name: "cpu", Kind: kinds.Metric, Strict: true, Metrics: []schemas.MetricDescriptor{
		{Name: "load", Unit: "1", Points: kinds.PointsGauge, Type: kinds.ValueDouble, Labels: []string{"host", "region"}, Required: []string{"host", "region"}, Defaults: map[string]string{"region": "eu"}},
		{Name: "up", Type: kinds.ValueBool}, {Name: "cores", Type: kinds.ValueInt64}, {Name: "latency", Type: kinds.ValueDistribution}, {Name: "any"},
	}}.Declared()
	if err != nil {
		panic(err)
	}
	return t
}()

func TestDescribedMetrics(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, want string }{
		"as described":         {`{"type":"load","value":0.5,"unit":"1","points":"gauge","host":"a","region":"us"}`, ""},
		"completed":            {`{"type":"load","value":0.5,"host":"a"}`, ""},
		"a label is missing":   {`{"type":"load","value":0.5,"region":"us"}`, `bad labels: points of metric "load" must have the label "host"`},
		"a label is empty":     {`{"type":"load","value":0.5,"host":""}`, `bad labels: points of metric "load" must have the label "host"`},
		"another unit":         {`{"type":"load","value":0.5,"unit":"%"}`, `bad value: unit is "%", points of metric "load" have "1"`},
		"other points":         {`{"type":"load","value":0.5,"points":"delta"}`, `bad value: points is "delta", points of metric "load" have "gauge"`},
		"stale":                {`{"type":"load","value":0,"points":"stale","host":"a"}`, ""},
		"a label too many":     {`{"type":"load","value":0.5,"rack":"7"}`, `bad labels: metric "load" has no label "rack"; its labels are host, region`},
		"not described":        {`{"type":"loda","value":0.5}`, `bad value: metric "loda" is not described, and topic "cpu" is strict`},
		"a text":               {`{"type":"load","value":"high"}`, `bad value: value is "high", it must be a number`},
		"a text for an int64":  {`{"type":"cores","value":"four"}`, `bad value: value is "four", it must be a number`},
		"half a core":          {`{"type":"cores","value":1.5}`, `bad value: value is 1.5, metric "cores" has values of type int64`},
		"2^53":                 {`{"type":"cores","value":9007199254740992}`, ""},
		"2^53+1":               {`{"type":"cores","value":9007199254740993}`, "bad value: value is 9007199254740993, whole numbers must be -9007199254740992 to 9007199254740992, which the column has exactly"},
		"a bool":               {`{"type":"up","value":1}`, ""},
		"two for a bool":       {`{"type":"up","value":2}`, `bad value: value is 2, metric "up" has values of type bool`},
		"a distribution":       {`{"type":"latency","count":2,"sum":3,"min":1,"max":2,"m2":0.5,"buckets":{"bounds":[1],"counts":[1,1]}}`, ""},
		"a value for one":      {`{"type":"latency","value":2}`, `bad value: metric "latency" has values of type distribution, and this point is a value`},
		"one for a value":      {`{"type":"load","count":2,"host":"a"}`, `bad value: metric "load" has values of type double, and this point is a distribution`},
		"buckets short":        {`{"type":"any","count":3,"buckets":{"bounds":[1],"counts":[1,1]}}`, "bad value: the counts of buckets add up to 2, count is 3"},
		"buckets that wrap":    {`{"type":"any","count":1,"buckets":{"bounds":[1],"counts":[18446744073709551615,2]}}`, "bad value: the counts of buckets add up to more than 9223372036854775807"},
		"buckets that fall":    {`{"type":"any","count":2,"buckets":{"bounds":[2,1],"counts":[1,1,0]}}`, "bad value: buckets have the bound 1 after 2, they must rise"},
		"a count too few":      {`{"type":"any","count":2,"buckets":{"bounds":[1],"counts":[2]}}`, "bad value: buckets have 1 bounds and 1 counts, they must have one count more than bounds and at most 1000 bounds"},
		"no buckets":           {`{"type":"any","count":2,"buckets":"none"}`, `bad value: buckets is "none", it must be JSON`},
		"a count below zero":   {`{"type":"any","count":-1}`, "bad value: count is -1, it must be 0 to 9007199254740992"},
		"spread below zero":    {`{"type":"any","count":1,"m2":-1}`, "bad value: m2 is -1, it must not be below zero"},
		"greatest below least": {`{"type":"any","count":1,"min":3,"max":2}`, "bad value: max is 2, less than min, which is 3"},
		"no greatest":          {`{"type":"any","count":1,"min":3}`, "bad value: max is 0, less than min, which is 3"},
		"no value":             {`{"type":"any"}`, "bad value: value is missing, and so is count"},
		"no name":              {`{"value":1}`, "bad value: type is missing"},
		"a label twice":        {`{"type":"any","value":1,"a":"1","attributes":{"a":"2"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := rawjson.Keys{Topic: &describedTopic}
			e, err := keys.Parse([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			given := slices.Clone(e.Attrs)
			before := e.Attrs
			describedTopic.Complete(&e)
			if !slices.Equal(given, before) {
				t.Error("the attributes that were given changed")
			}
			err = describedTopic.Check(&e, atNoon.UnixNano(), atNoon.UnixNano())
			if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want || schemas.Reason(err) == "") {
				t.Fatalf("%v (%s), want %s", err, schemas.Reason(err), c.want)
			}
			if err != nil {
				return
			}
			if err := checkFrame(t, &describedTopic, &describedTopic, e); err != nil {
				t.Errorf("its frame is refused: %v", err)
			}
			if name == "completed" {
				if got := textsOf(e.Attrs); !slices.Contains(got, "region=eu") || !slices.Contains(got, "unit=1") {
					t.Errorf("completed to %v", e.Attrs)
				}
			}
		})
	}
}

func TestDescriptors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		topic schemas.Topic
		want  string
	}{
		"of a log":       {schemas.Topic{Name: "app", Metrics: []schemas.MetricDescriptor{{Name: "a"}}}, "metrics: only a topic of kind metric has it"},
		"a strict log":   {schemas.Topic{Name: "app", Strict: true}, "strict: only a topic of kind metric has it"},
		"twice":          {schemas.Topic{Name: "m", Kind: kinds.Metric, Metrics: []schemas.MetricDescriptor{{Name: "a"}, {Name: "b"}, {Name: "a"}}}, `metric "a" is described twice`},
		"without a name": {schemas.Topic{Name: "m", Kind: kinds.Metric, Metrics: []schemas.MetricDescriptor{{}}}, "a metric's name has 1 to"},
		"of no kind":     {schemas.Topic{Name: "m", Kind: kinds.Metric, Metrics: []schemas.MetricDescriptor{{Name: "a", Points: "stale"}}}, `has points "stale"`},
		"of no type":     {schemas.Topic{Name: "m", Kind: kinds.Metric, Metrics: []schemas.MetricDescriptor{{Name: "a", Type: "float"}}}, `has type "float"`},
		"a column":       {schemas.Topic{Name: "m", Kind: kinds.Metric, Metrics: []schemas.MetricDescriptor{{Name: "a", Labels: []string{"value"}}}}, `has the label "value"`},
		"a foreign default": {schemas.Topic{Name: "m", Kind: kinds.Metric, Metrics: []schemas.MetricDescriptor{{Name: "a", Labels: []string{"x"}, Defaults: map[string]string{"y": "1"}}}},
			`has a default of it, and its labels do not list it`},
		"a foreign label required": {schemas.Topic{Name: "m", Kind: kinds.Metric, Metrics: []schemas.MetricDescriptor{{Name: "a", Labels: []string{"x"}, Required: []string{"y"}}}}, `requires the label "y"`},
		"a column required":        {schemas.Topic{Name: "m", Kind: kinds.Metric, Metrics: []schemas.MetricDescriptor{{Name: "a", Required: []string{"unit"}}}}, `has the label "unit"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.topic.Declared(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	open := describedTopic
	open.Strict, open.Metrics = false, slices.Clone(describedTopic.Metrics[:1])
	if got, err := describedTopic.Evolve(open); err != nil || got.Strict || len(got.Metrics) != 1 || got.Version != describedTopic.Version {
		t.Errorf("%+v, %v", got, err)
	}
}

// Whatever the point: when the topic takes it, the router takes its frame.
func TestPointsAndFramesAgree(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopicOf(kinds.Metric, "cpu")
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(
			rapid.Map(rapid.Int64Range(-1<<54, 1<<54), func(n int64) schemas.Attr { return schemas.Int64("", n) }),
			rapid.Map(rapid.SampledFrom([]float64{0, 1, -1, 2.5, 1e300, math.NaN(), math.Inf(-1)}), func(v float64) schemas.Attr { return schemas.Float64("", v) }),
			rapid.Map(rapid.SampledFrom([]string{"", "7", "gauge", `{"bounds":[1],"counts":[1,1]}`, `{"bounds":[],"counts":[2]}`, "[]", "x\xff"}), func(s string) schemas.Attr { return schemas.String("", s) }),
			rapid.Map(rapid.Int64Range(-10, 10), func(s int64) schemas.Attr { return schemas.Time("", atNoon.Add(time.Duration(s)*time.Second)) }),
		)
		e := schemas.Event{Type: rapid.SampledFrom([]string{"", "cpu", "cpu", "cpu"}).Draw(t, "type")}
		for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"value", "value", "count", "sum", "min", "max", "m2", "buckets", "points", "start", "unit", "host", "b\xff"}), 0, 9).Draw(t, "keys") {
			a := value.Draw(t, key)
			a.Key = key
			e.Attrs = append(e.Attrs, a)
		}
		if err := topic.Check(&e, atNoon.UnixNano(), atNoon.UnixNano()); err != nil {
			if schemas.Reason(err) == "" {
				t.Fatalf("no reason for %v", err)
			}
			return
		}
		if err := checkFrame(t, &topic, &topic, e); err != nil {
			t.Fatalf("the frame of a point that was taken, %v: %v", e.Attrs, err)
		}
	})
}
