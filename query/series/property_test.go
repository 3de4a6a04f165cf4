package series

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var month = time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC) // points lie over its edge

// anyPoint is a point of few series and instants, so that many come again.
var anyPoint = rapid.Custom(func(t *rapid.T) point {
	p := point{
		metric: rapid.SampledFrom([]string{"cpu", "cpu", "requests", "sizes"}).Draw(t, "metric"),
		unit:   rapid.SampledFrom([]string{"", "", "", "%"}).Draw(t, "unit"),
		at:     month.Add(time.Duration(rapid.IntRange(0, 480).Draw(t, "quarter minutes")) * 15 * time.Second),
		value:  float64(rapid.IntRange(-1000, 1000).Draw(t, "value")) / 8,
		shard:  rapid.Uint64Range(0, 1).Draw(t, "shard"),
		labels: map[string]string{"host": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "host")},
	}
	if rapid.Bool().Draw(t, "in a region") {
		p.labels["region"] = rapid.SampledFrom([]string{"eu", "us"}).Draw(t, "region")
	}
	switch p.metric {
	case "cpu":
		p.kind = rapid.SampledFrom([]string{"", "gauge", "gauge", "stale"}).Draw(t, "kind")
	case "requests":
		p.value = max(p.value, -p.value)
		p.kind = rapid.SampledFrom([]string{"cumulative", "cumulative", "", "delta"}).Draw(t, "kind")
		p.start = rapid.SampledFrom([]time.Time{{}, month.Add(-time.Hour), month.Add(-time.Minute)}).Draw(t, "start")
	case "sizes":
		if d := (Distribution{Count: 2, Min: Number(p.value), Max: Number(p.value) + 3}); rapid.Bool().Draw(t, "distribution") {
			d.Sum, d.M2 = d.Min+d.Max, 4.5
			p.dist, p.value = &d, 0
		}
	}
	return p
})

// onlyUnitless and onlyHostB are filters that the reference knows.
const (
	onlyUnitless = "unit = ''"
	onlyHostB    = "attributes.host = 'b'"
)

// anyRequest is a request that can be answered.
var anyRequest = rapid.Custom(func(t *rapid.T) Request {
	req := Request{
		Metric: rapid.SampledFrom([]string{"cpu", "requests", "sizes"}).Draw(t, "metric"),
		From:   month.Add(time.Duration(rapid.IntRange(-10, 60).Draw(t, "from")) * time.Minute),
		Period: time.Duration(rapid.SampledFrom([]int{1, 5, 7, 60}).Draw(t, "period")) * time.Minute,
		Reduce: rapid.SampledFrom(Reducers).Draw(t, "reduce"),
	}
	aligners := map[string][]Aligner{"cpu": slices.DeleteFunc(slices.Clone(Aligners[1:]), func(a Aligner) bool { return a == Delta || a == Rate }),
		"requests": {Delta, Rate, Delta, Rate, Sum, Mean}, "sizes": {Min, Max, Mean, Count, Sum, Stddev, Summary}}[req.Metric]
	req.Align = rapid.SampledFrom(aligners).Draw(t, "align")
	req.To = req.From.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "minutes")) * time.Minute)
	if req.Align == Summary && percentiles[req.Reduce] != "" && req.Metric == "sizes" { // of which buckets tell but roughly
		req.Reduce = Mean
	}
	if req.Reduce == None && req.Align == Count { // two series with one name
		req.Where = onlyUnitless
	} else if rapid.Bool().Draw(t, "of a host") {
		req.Where = onlyHostB
	}
	if req.Reduce != None {
		req.By = rapid.SampledFrom([][]string{nil, {"host"}, {"region"}, {"host", "region"}}).Draw(t, "by")
	}
	return req
})

// Whatever points come, in whatever order and how often, and however much of what is derived
// is there, an answer is what the definitions say, also of a topic of several lanes.
func TestAnyPoints(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, 4)
	var all []point
	made := 0
	for round := range 12 {
		some := rapid.SliceOfN(anyPoint, 20, 60).Example(round)
		for i := range some {
			made++
			some[i].made = made
			if round%3 == 2 && i%4 == 0 { // made long ago, and stored now
				some[i].made = 1 + i
			}
		}
		in(&r.Topic, some)
		r.insert(some...)
		all = append(all, some...)
		if round%2 == 1 { // sent again, with what it was
			r.insert(some[:10]...)
			all = append(all, some[:10]...)
		}
		switch round % 4 {
		case 1:
			r.Examine(r.Shards()[round%len(r.Shards())])
		case 3:
			r.Round()
		}
		for seed := range 6 {
			r.compare(all, anyRequest.Example(100*round+seed))
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

func (r *rig) compare(all []point, req Request) {
	r.T.Helper()
	for _, label := range req.By { // what no series has is refused
		if !slices.ContainsFunc(all, func(p point) bool { return p.metric == req.Metric && p.labels[label] != "" }) {
			return
		}
	}
	req.Topic = "cpu"
	a, err := r.read.Align(r.T.Context(), req)
	if err != nil && strings.Contains(err.Error(), "has no series with the label") {
		return
	}
	if err != nil {
		r.T.Fatalf("%+v: %v", req, err)
	}
	want, got := reference(all, req), map[string]Point{}
	for _, g := range a.Groups {
		labels := maps.Clone(g.Labels)
		for _, p := range g.Points {
			got[labelsText(labels)+"|"+g.Unit+"|"+p.Time.Format(time.RFC3339Nano)] = p
		}
	}
	for key, p := range want {
		if other, ok := got[key]; !ok || !near(p, other) {
			r.T.Errorf("%+v\n%q is %s, want %s", req, key, show(other), show(p))
			return
		}
	}
	for key, p := range got {
		if _, ok := want[key]; !ok {
			r.T.Errorf("%+v\n%q is %s, and should not be", req, key, show(p))
			return
		}
	}
}

func show(p Point) string {
	if p.Value != nil {
		return fmt.Sprint(*p.Value)
	}
	return fmt.Sprintf("%+v", p.Distribution)
}

// labelsOf are the labels of one of a thousand series.
func labelsOf(i int) map[string]string {
	return map[string]string{"env": string(rune('a' + i%3)), "host": fmt.Sprint(i % 10), "n": fmt.Sprint(i)}
}

// condition is a filter with what it means.
type condition struct {
	text  string
	holds func(map[string]string) bool
}

var anyCondition func(depth int) *rapid.Generator[condition]

func init() {
	anyCondition = func(depth int) *rapid.Generator[condition] {
		return rapid.Custom(func(t *rapid.T) condition {
			if depth > 0 && rapid.Bool().Draw(t, "joined") {
				a, b := anyCondition(depth-1).Draw(t, "left"), anyCondition(depth-1).Draw(t, "right")
				switch rapid.IntRange(0, 2).Draw(t, "how") {
				case 0:
					return condition{"(" + a.text + " AND " + b.text + ")", func(l map[string]string) bool { return a.holds(l) && b.holds(l) }}
				case 1:
					return condition{"(" + a.text + " OR " + b.text + ")", func(l map[string]string) bool { return a.holds(l) || b.holds(l) }}
				}
				return condition{"NOT " + a.text, func(l map[string]string) bool { return !a.holds(l) }}
			}
			label := rapid.SampledFrom([]string{"env", "host"}).Draw(t, "label")
			values := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "1", "2", "9", "x"}), 1, 3).Draw(t, "values")
			list := "('" + strings.Join(values, "', '") + "')"
			switch rapid.IntRange(0, 3).Draw(t, "operator") {
			case 0:
				return condition{"attributes." + label + " = '" + values[0] + "'", func(l map[string]string) bool { return l[label] == values[0] }}
			case 1:
				return condition{"attributes." + label + " != '" + values[0] + "'", func(l map[string]string) bool { return l[label] != values[0] }}
			case 2:
				return condition{"attributes." + label + " IN " + list, func(l map[string]string) bool { return slices.Contains(values, l[label]) }}
			}
			return condition{"attributes." + label + " NOT IN " + list, func(l map[string]string) bool { return !slices.Contains(values, l[label]) }}
		})
	}
}

// Filters select the series that a count by hand does, whether they are listed or read from
// rows, and reads have the points of those alone.
func TestFilters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var points []point
	for i := range 1000 {
		points = append(points, point{metric: "m", labels: labelsOf(i), at: month.Add(time.Duration(i) * time.Second), value: 1, shard: uint64(i % 2)})
	}
	r.insert(points[:600]...)
	r.Round()
	r.insert(points[600:]...)
	hand := condition{"(attributes.env = 'a' AND attributes.host NOT IN ('1', '2')) OR (attributes.env IN ('b') AND attributes.host != '9')",
		func(l map[string]string) bool {
			return l["env"] == "a" && l["host"] != "1" && l["host"] != "2" || l["env"] == "b" && l["host"] != "9"
		}}
	conditions := []condition{hand}
	for seed := range 30 {
		conditions = append(conditions, anyCondition(3).Example(seed))
	}
	for _, c := range conditions {
		want := 0
		for i := range 1000 {
			if c.holds(labelsOf(i)) {
				want++
			}
		}
		names, _, err := r.read.Metrics(t.Context(), ListRequest{Topic: "cpu", Where: c.text})
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if got := len(names) > 0 && names[0].Series == uint64(want); !got && want+len(names) > 0 {
			t.Errorf("%s: %v, want %d", c.text, names, want)
		}
		a := r.align(Request{Metric: "m", Where: c.text, From: month.Add(-time.Minute), To: month.Add(time.Hour), Period: 24 * time.Hour, Align: Count, Reduce: Sum})
		got := 0.0
		for _, g := range a.Groups {
			for _, p := range g.Points {
				got += float64(*p.Value)
			}
		}
		if int(got) != want {
			t.Errorf("%s: %v points, want %d", c.text, got, want)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(points), func(p point) bool { return !hand.holds(p.labels) })); n != 568 {
		t.Errorf("%d by hand", n)
	}
}
