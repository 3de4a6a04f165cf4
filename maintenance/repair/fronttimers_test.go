package repair

import (
	"testing"

	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/tables"
)

func TestTimerFate(t *testing.T) {
	t.Parallel()
	record := func(op timer.Op, seq uint64) *timer.Record { return &timer.Record{Op: op, Seq: seq} }
	newest := func(op timer.Op, seq uint64) *tables.NewestTimer {
		return &tables.NewestTimer{Op: op, Seq: seq, Spec: true}
	}
	for name, c := range map[string]struct {
		r    *timer.Record
		n    *tables.NewestTimer
		want int
	}{
		"the same":                     {record(timer.Created, 5), newest(timer.Created, 5), keepTimer},
		"not stored yet":               {record(timer.Done, 9), newest(timer.Firing, 8), keepTimer},
		"over and gone":                {nil, newest(timer.Done, 9), keepTimer},
		"pending and gone":             {nil, newest(timer.Created, 5), restoreTimer},
		"waits for another attempt":    {nil, newest(timer.Retry, 7), restoreTimer},
		"firing and gone":              {nil, newest(timer.Firing, 6), restoreTimer},
		"restored and gone":            {nil, newest(timer.Restored, 6), restoreTimer},
		"an older copy":                {record(timer.Created, 5), newest(timer.Updated, 8), restoreTimer},
		"an older copy of one done":    {record(timer.Created, 5), newest(timer.Done, 8), dropTimer},
		"an older copy, failed before": {record(timer.Failed, 5), newest(timer.Cancelled, 8), dropTimer},
		"what it calls is nowhere":     {nil, &tables.NewestTimer{Op: timer.Created, Seq: 5}, loseTimer},
	} {
		if got := timerFate(c.r, c.n); got != c.want {
			t.Errorf("%s: %d, expected %d", name, got, c.want)
		}
	}
}
