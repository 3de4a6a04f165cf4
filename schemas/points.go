package schemas

import (
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// PointStartBytes is what a start adds to a point's Event.Bytes.
const PointStartBytes = len(kinds.ColStart) + 8

// pointColumns are what points of one series may differ in, beside the kind of points.
var pointColumns = []string{ColTs, ColID, kinds.ColValue, kinds.ColStart}

// OnePerSeries reports whether all that the topic says of a point of this metric is of its series alone, whatever its
// time, value and start are. So a series can be checked once. e has gone through the topic's privacy rules and
// Complete, and has a value and no start.
func (t *Topic) OnePerSeries(e *Event) bool {
	if t.Kind != kinds.Metric || e.attr(kinds.ColValue) == nil || e.attr(kinds.ColStart) != nil || e.attr(kinds.ColCount) != nil {
		return false
	}
	if d := t.described(e.Type); d != nil && d.Type != "" && d.Type != kinds.ValueDouble {
		return false
	}
	if slices.ContainsFunc(t.LaneBy, func(by string) bool { return slices.Contains(pointColumns, by) }) {
		return false
	}
	rules := NamesUnder(t.EitherNameRules())
	for _, column := range pointColumns {
		if _, ruled := rules.Rule(column); ruled {
			return false
		}
	}
	return len(e.Attrs) < MaxAttrs && e.Bytes()+PointStartBytes <= MaxEventBytes // with a start, too
}

// CheckPoint holds a point of a series that was checked to what is its own: its time and start, unix ns, and its value.
// A start of 0 is none. nowNs is the time now.
func (t *Topic) CheckPoint(tsNs, nowNs int64, value float64, startNs int64) error {
	if err := validateTime(tsNs, nowNs, t.MaxFuture()); err != nil {
		return err
	}
	if !isFinite(value) {
		return CheckNumber(&kinds.Rule{Column: kinds.ColValue}, value, 0)
	}
	return CheckNotAfter(&kinds.Rule{Column: kinds.ColStart, NotAfter: ColTs}, startNs, tsNs)
}

// PointOf is e, which has neither, with a value and, unless it is 0, a start. Its attributes are its own.
func PointOf(e Event, tsNs int64, value float64, startNs int64) Event {
	e.Time = time.Unix(0, tsNs).UTC()
	attrs := make([]Attr, 0, len(e.Attrs)+2)
	attrs = append(append(attrs, e.Attrs...), Float64(kinds.ColValue, value))
	if startNs != 0 {
		attrs = append(attrs, Time(kinds.ColStart, time.Unix(0, startNs).UTC()))
	}
	e.Attrs = attrs
	return e
}
