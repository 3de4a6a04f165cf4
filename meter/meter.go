package meter

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Diff is one change of a metered size.
type Diff struct {
	// Meter names what is measured, such as "bytes".
	Meter string
	// Provider and Space name whose size changes. Space is required.
	Provider, Space string
	// Cause is why it changed: the id of the request, or of the message. Required.
	Cause string
	// Delta is by how much, at most 2^53 in both directions.
	Delta int64
	// Customer is who pays. Optional; it is the event's user, which an erasure names.
	Customer string
	// Time is when it changed. The zero time means now, by the producer's clock. A diff
	// that is sent again should keep its time: the earliest copy counts.
	Time time.Time
	// Labels are more attributes of the event.
	Labels []schemas.Attr
}

// Event returns the diff as an event of a topic of kind meter. The error says why no such topic takes it:
// schemas.ErrValue, or ErrLabels for a label given twice.
func (d Diff) Event() (schemas.Event, error) {
	attrs := make([]schemas.Attr, 0, 4+len(d.Labels))
	attrs = append(attrs,
		schemas.String(kinds.ColProvider, d.Provider), schemas.String(kinds.ColSpace, d.Space),
		schemas.String(kinds.ColCause, d.Cause), schemas.Int64(kinds.ColDelta, d.Delta))
	e := schemas.Event{Time: d.Time, Type: d.Meter, UserID: d.Customer, Attrs: append(attrs, d.Labels...)}
	if err := schemas.CheckKind(kinds.Meter, &e); err != nil {
		return schemas.Event{}, fmt.Errorf("meter: %w", err)
	}
	return e, nil
}
