package records

import (
	"testing"

	"github.com/almanac-events/almanac/schemas/timer"
)

func TestTimerFate(t *testing.T) {
	t.Parallel()
	record := func(op timer.Op, seq uint64) *timer.Record { return &timer.Record{Op: op, Seq: seq} }
	newest := func(op timer.Op, seq uint64) *transition {
		return &transition{Op: op, Seq: seq, Spec: true}
	}
	for name, c := range map[string]struct {
		r    *timer.Record
		n    *transition
		want Fate
	}{
		"the same":                     {record(timer.Created, 5), newest(timer.Created, 5), Keep},
		"not stored yet":               {record(timer.Done, 9), newest(timer.Firing, 8), Keep},
		"over and gone":                {nil, newest(timer.Done, 9), Keep},
		"pending and gone":             {nil, newest(timer.Created, 5), Restore},
		"waits for another attempt":    {nil, newest(timer.Retry, 7), Restore},
		"firing and gone":              {nil, newest(timer.Firing, 6), Restore},
		"restored and gone":            {nil, newest(timer.Restored, 6), Restore},
		"an older copy":                {record(timer.Created, 5), newest(timer.Updated, 8), Restore},
		"an older copy of one done":    {record(timer.Created, 5), newest(timer.Done, 8), Drop},
		"an older copy, failed before": {record(timer.Failed, 5), newest(timer.Cancelled, 8), Drop},
		"what it calls is nowhere":     {nil, &transition{Op: timer.Created, Seq: 5}, Lose},
	} {
		t.Run(name, func(t *testing.T) {
			if got := timerFate(c.r, c.n); got != c.want {
				t.Errorf("%s: %d, expected %d", name, got, c.want)
			}
		})
	}
}
