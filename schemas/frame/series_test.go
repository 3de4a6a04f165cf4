package frame

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A frame of points of series is the frame of their events, byte for byte.
func TestAppendPoint(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopicOf(kinds.Metric, "cpu")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "a", "host", "a longer word", "\xff", "ü"})
		var all []schemas.Event
		for range rapid.IntRange(1, 5).Draw(t, "series") {
			e := schemas.Event{Type: "load" + text.Draw(t, "metric"), Service: text.Draw(t, "service"), UserID: text.Draw(t, "user")}
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"z", "a", "label.unit", "host", "region"}), 0, 5, rapid.ID).Draw(t, "labels") {
				e.Attrs = append(e.Attrs, schemas.String(key, text.Draw(t, "label")))
			}
			if unit := text.Draw(t, "unit"); unit != "" {
				e.Attrs = append(e.Attrs, schemas.String(kinds.ColUnit, unit))
			}
			if rapid.Bool().Draw(t, "stale") {
				e.Attrs = append(e.Attrs, schemas.String(kinds.ColPoints, kinds.PointsStale))
			}
			all = append(all, e)
		}
		made := make([]*Series, len(all))
		for i := range all {
			e := schemas.PointOf(all[i], 1, 0, 0)
			if !topic.OnePerSeries(&e) {
				t.Fatalf("%+v is not of its series alone", e)
			}
			made[i] = NewSeries(&topic, &e)
		}
		points, events := NewBuilder(&topic), NewBuilder(&topic)
		for range 2 { // a builder is used again
			points.Reset()
			events.Reset()
			for n := range rapid.IntRange(1, 20).Draw(t, "points") {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				ts := rapid.Int64Range(1, int64(300*24*time.Hour)).Draw(t, "ts")
				value, start := rapid.SampledFrom([]float64{0, 1, -1.5, 1e300}).Draw(t, "value"), rapid.Int64Range(0, ts).Draw(t, "start")
				id := schemas.ID{15: byte(n + 1)}
				points.AppendPoint(made[i], ts, id, value, start)
				e := schemas.PointOf(all[i], ts, value, start)
				events.Append(&e, ts, id)
				if points.RawBytes() != events.RawBytes() || points.MaxBytes(100) != events.MaxBytes(100) {
					t.Fatalf("%d and %d bytes, at most %d and %d", points.RawBytes(), events.RawBytes(), points.MaxBytes(100), events.MaxBytes(100))
				}
			}
			head, payload := points.Encode()
			want, wanted := events.Encode()
			if head != want || !bytes.Equal(payload, wanted) {
				t.Fatalf("frames differ: %+v and %+v", head, want)
			}
		}
	})
}
