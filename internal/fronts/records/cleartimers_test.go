package records

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

func TestClearsTimer(t *testing.T) {
	t.Parallel()
	old, present := schemas.NewID(1), schemas.NewID(2)
	record := func(seq uint64, life schemas.ID, op timer.Op) timer.Record {
		return timer.Record{Seq: seq, Life: life, Op: op}
	}
	const fence = 10
	for name, c := range map[string]struct {
		records []timer.Record
		life    schemas.ID
		cancels bool
		upTo    uint64
	}{
		"pending":                               {[]timer.Record{record(3, present, timer.Created)}, present, true, 3},
		"firing":                                {[]timer.Record{record(3, present, timer.Created), record(4, present, timer.Firing)}, present, true, 4},
		"over":                                  {[]timer.Record{record(3, present, timer.Created), record(4, present, timer.Done)}, present, false, 4},
		"cancelled after the fence":             {[]timer.Record{record(3, present, timer.Created), record(12, present, timer.Cancelled)}, present, false, 3},
		"claimed and cancelled after the fence": {[]timer.Record{record(3, present, timer.Created), record(11, present, timer.Firing), record(12, present, timer.Cancelled)}, present, false, 3},
		"an earlier life":                       {[]timer.Record{record(3, old, timer.Created), record(4, old, timer.Done), record(5, present, timer.Created)}, old, false, 4},
		"an earlier life, left already":         {[]timer.Record{record(5, present, timer.Created)}, old, false, 0},
		"an earlier life, the present is new":   {[]timer.Record{record(3, old, timer.Done), record(12, present, timer.Created)}, old, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			last := &c.records[len(c.records)-1]
			if got := cancels(last, c.life.String()); got != c.cancels {
				t.Errorf("it is cancelled first: %v", got)
			}
			if got := clearsTimer(c.records, fence, c.life.String()); got != c.upTo {
				t.Errorf("its records go up to %d, expected %d", got, c.upTo)
			}
		})
	}
}
