package timer

import (
	"encoding/json"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// RowEvent is Event of a record whose Spec was read, where it may be of another record: then it is in the row of that one.
func (r *Record) RowEvent() (schemas.Event, error) {
	as := *r
	if as.SpecSeq != 0 {
		as.Spec = nil
	}
	return as.Event()
}

// Event returns the row of the history that the record becomes. Its time is that of the transition; its
// id is the caller's to derive. It has the record's Spec, so that one must have been read.
func (r *Record) Event() (schemas.Event, error) {
	e := schemas.Event{Time: time.Unix(0, r.Changed).UTC(), UserID: r.User, Attrs: []schemas.Attr{
		schemas.String(kinds.ColGroup, r.Key.Group),
		schemas.String(kinds.ColTimerID, r.Key.ID),
		schemas.String(kinds.ColLife, r.Life.String()),
		schemas.Int64(kinds.ColSlot, int64(r.Key.Slot)),
		schemas.Int64(kinds.ColRevision, r.Revision),
		schemas.Int64(kinds.ColAttempt, r.Attempt),
		schemas.String(kinds.ColState, string(r.Op)),
		schemas.Time(kinds.ColDue, time.Unix(0, r.Due)),
		schemas.String(kinds.ColHost, r.Host),
		schemas.Int64(kinds.ColStatus, int64(r.Call.Status)),
		schemas.String(kinds.ColError, r.Call.Error),
		schemas.String(kinds.ColDetail, r.Call.Detail), // the beginning of the answer where the group keeps it, or the error's text
		schemas.Float64(kinds.ColTookMs, milliseconds(r.Call.Took)),
		schemas.Float64(kinds.ColLateMs, milliseconds(r.Call.Late)),
		schemas.Int64(kinds.ColSeq, int64(r.Seq)),
	}}
	if r.Spec != nil {
		spec, err := json.Marshal(r.Spec)
		if err != nil {
			return e, err
		}
		e.Attrs = append(e.Attrs, schemas.String(kinds.ColSpec, string(spec)))
	}
	return e, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
