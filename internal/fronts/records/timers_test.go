package records

import (
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

func TestCompareTimer(t *testing.T) {
	t.Parallel()
	topic, keeping := schemas.NewTopicOf(kinds.Timer, "timers"), schemas.NewTopicOf(kinds.Timer, "timers")
	keeping.KeepDays = 30
	now := time.Now()
	old := now.AddDate(-1, 0, 0).UnixNano()
	life := schemas.NewID(now.UnixNano())
	record := func(op timer.Op, seq uint64) *timer.Record {
		return &timer.Record{Op: op, Seq: seq, Life: life, Revision: 1, Due: 100, Changed: now.UnixNano(), CreatedAt: now.UnixNano()}
	}
	newest := func(op timer.Op, seq uint64) *transition {
		return &transition{Op: op, Seq: seq, Life: life.String(), Revision: 1, Due: 100, Changed: now.UnixNano(), Begun: true}
	}
	other, unbegun, ancient := newest(timer.Created, 5), newest(timer.Created, 5), record(timer.Created, 5)
	other.Due, unbegun.Begun = 101, false
	ancient.Changed, ancient.CreatedAt = old, old
	upTo := map[int]uint64{0: 10}
	for name, c := range map[string]struct {
		t    *schemas.Topic
		r    *timer.Record
		n    *transition
		want string // part of what is said; Equal and Waiting whole
	}{
		"equal":                    {&topic, record(timer.Created, 5), newest(timer.Created, 5), Equal},
		"over and left":            {&topic, nil, newest(timer.Done, 5), Equal},
		"on its way":               {&topic, record(timer.Firing, 11), newest(timer.Created, 5), Waiting},
		"never stored, on its way": {&topic, record(timer.Created, 11), nil, Waiting},
		"absent and pending":       {&topic, nil, newest(timer.Created, 5), "does not have it, ClickHouse says that it is pending"},
		"absent and firing":        {&topic, nil, newest(timer.Firing, 5), "says that it is firing"},
		"ended, and pending here":  {&topic, record(timer.Created, 5), newest(timer.Failed, 7), "it is pending in TIMERS, record 5, and ended in ClickHouse: failed"},
		"behind":                   {&topic, record(timer.Created, 5), newest(timer.Updated, 7), "has a later one, 7"},
		"another row":              {&topic, record(timer.Created, 5), other, "another one in ClickHouse"},
		"without its creation":     {&topic, record(timer.Created, 5), unbegun, "does not have its creation"},
		"not stored":               {&topic, record(timer.Created, 5), nil, "not in ClickHouse, though its lane is stored up to 10"},
		"dropped by retention":     {&keeping, ancient, nil, Equal},
	} {
		t.Run(name, func(t *testing.T) {
			got := compareTimer(&TopicState{Topic: c.t, UpTo: upTo, Now: now}, c.r, c.n)
			if got != c.want && (c.want == Equal || c.want == Waiting || !strings.Contains(got, c.want)) {
				t.Errorf("%s: %q, expected %q", name, got, c.want)
			}
		})
	}
}
