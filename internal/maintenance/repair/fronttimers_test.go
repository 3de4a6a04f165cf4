package repair

import (
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
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

// Dispatchers wait as long as TIMERS ends below what was routed. What ended is taken out before it goes on.
func TestTimersPlanDropsEndedFirst(t *testing.T) {
	t.Parallel()
	some := []lostTimer{{key: schemas.TimerKey{Group: "g", ID: "t"}}}
	for _, c := range []struct {
		name string
		plan timersPlan
		want []Do
	}{
		{"an older copy", timersPlan{advance: &Action{Do: AdvanceFront}, again: &Action{Do: PutAgain}, lost: some, ended: some, gone: some}, []Do{DropEnded, AdvanceFront, PutAgain, RestoreTimers, Lost}},
		{"it went on", timersPlan{again: &Action{Do: PutAgain}, ended: some}, []Do{DropEnded, PutAgain}},
		{"whole", timersPlan{}, nil},
	} {
		p := &Plan{}
		c.plan.topic = &schemas.Topic{Name: schemas.DefaultTimerTopic}
		c.plan.addTo(p)
		var got []Do
		for _, a := range p.Actions {
			got = append(got, a.Do)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
