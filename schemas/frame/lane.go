package frame

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// checkLane refuses a frame with an event of another lane than it came by, of a topic whose events have an identity.
func (r *Reader) checkLane(lane int) error {
	if lane == schemas.NoLane || r.topic.Lanes == 1 || !r.topic.HasIdentity() {
		return nil
	}
	at := make([]int, len(r.topic.LaneBy))
	for k, by := range r.topic.LaneBy {
		at[k] = r.ColumnIndex(by)
	}
	var e schemas.Event
	for i := range r.rows {
		e = schemas.Event{Attrs: e.Attrs[:0]}
		for k, by := range r.topic.LaneBy {
			r.take(&e, by, at[k], i)
		}
		if err := r.topic.CheckLane(&e, r.Ts(i), lane); err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	return nil
}

// take gives e event i's value of a column, which is column c of the frame; -1: the frame is of before the field.
func (r *Reader) take(e *schemas.Event, column string, c, i int) {
	switch column {
	case schemas.ColTs:
	case schemas.ColID:
		e.ID = r.ID(i)
	case schemas.ColLevel:
		e.Level = r.value(inLevel, i)
	case schemas.ColService:
		e.Service = r.value(inService, i)
	case schemas.ColType:
		e.Type = r.value(inType, i)
	case schemas.ColUserID:
		e.UserID = r.value(inUserID, i)
	case schemas.ColTraceID:
		e.TraceID = r.value(inTraceID, i)
	case schemas.ColSpanID:
		e.SpanID = r.value(inSpanID, i)
	case schemas.ColMessage:
		e.Message = r.value(inMessage, i)
	case kinds.LaneByAttributes:
		r.labels(e, i)
	default:
		if c < 0 {
			return
		}
		if a, ok := r.field(c, i); ok {
			e.Attrs = append(e.Attrs, a)
		}
	}
}

// labels gives e the attributes that event i has without a column.
func (r *Reader) labels(e *schemas.Event, i int) {
	from := uint64(0)
	if i > 0 {
		from = r.attrEnd[i-1]
	}
	col := &r.columns[inAttributes]
	values := len(col.words.ends) - len(col.keys)
	for k := from; k < r.attrEnd[i]; k++ {
		e.Attrs = append(e.Attrs, schemas.String(r.word(col, int(col.keys[k])), r.word(col, values+int(k))))
	}
}
