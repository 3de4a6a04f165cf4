package schemas

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// What depends on a point's own time, value or start is not asked of its series.
func TestOnePerSeries(t *testing.T) {
	t.Parallel()
	up := PointOf(Event{Type: "up"}, 1, 0, 0)
	full := Event{Type: "up"}
	for range MaxAttrs - 1 {
		full.Attrs = append(full.Attrs, String(strings.Repeat("x", 1+len(full.Attrs)/10)+string(rune('a'+len(full.Attrs)%10)), "1"))
	}
	for name, c := range map[string]struct {
		change func(*Topic)
		e      Event
		want   bool
	}{
		"plain":                 {func(*Topic) {}, up, true},
		"another kind":          {func(topic *Topic) { topic.Kind = kinds.Log }, up, false},
		"a distribution":        {func(*Topic) {}, Event{Type: "up", Attrs: []Attr{Int64(kinds.ColCount, 1)}}, false},
		"a start":               {func(*Topic) {}, PointOf(Event{Type: "up"}, 1, 0, 1), false},
		"values of any type":    {func(topic *Topic) { topic.Metrics = []MetricDescriptor{{Name: "up"}} }, up, true},
		"doubles":               {func(topic *Topic) { topic.Metrics = []MetricDescriptor{{Name: "up", Type: kinds.ValueDouble}} }, up, true},
		"whole numbers":         {func(topic *Topic) { topic.Metrics = []MetricDescriptor{{Name: "up", Type: kinds.ValueInt64}} }, up, false},
		"truths":                {func(topic *Topic) { topic.Metrics = []MetricDescriptor{{Name: "up", Type: kinds.ValueBool}} }, up, false},
		"lanes by time":         {func(topic *Topic) { topic.LaneBy = []string{ColType, ColTs} }, up, false},
		"lanes by value":        {func(topic *Topic) { topic.LaneBy = []string{kinds.ColValue} }, up, false},
		"lanes by tenant":       {func(topic *Topic) { topic.LaneBy = []string{ColUserID} }, up, true},
		"a rule for a label":    {func(topic *Topic) { topic.PII = []Private{{Field: "host", Rule: PrivacyDrop}} }, up, true},
		"a rule for the value":  {func(topic *Topic) { topic.PII = []Private{{Field: kinds.ColValue, Rule: PrivacyCoarseLocation}} }, up, false},
		"no room for a start":   {func(*Topic) {}, PointOf(full, 1, 0, 0), false},
		"no bytes for a start":  {func(*Topic) {}, PointOf(Event{Type: strings.Repeat("x", MaxEventBytes-PointStartBytes)}, 1, 0, 0), false},
		"room for a long start": {func(*Topic) {}, PointOf(Event{Type: strings.Repeat("x", MaxEventBytes-2*PointStartBytes-8)}, 1, 0, 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := NewTopicOf(kinds.Metric, "cpu")
			c.change(&topic)
			if got := topic.OnePerSeries(&c.e); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
