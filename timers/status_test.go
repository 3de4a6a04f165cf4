package timers

import (
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

func TestWhyOverdue(t *testing.T) {
	t.Parallel()
	const now = int64(time.Hour)
	record := func(n int, op timer.Op, host string, late time.Duration) (string, *timer.Record) {
		key := schemas.NewTimerKey("timers", "g", string(rune('a'+n)), 16, 4)
		return key.Subject(), &timer.Record{Key: key, Op: op, Host: host, Due: now - int64(late)}
	}
	for name, c := range map[string]struct {
		g      timer.Group
		late   time.Duration
		firing map[string]int
		inside int
		want   string
	}{
		"on time":                  {timer.Group{}, -time.Second, nil, 0, ""},
		"late by a moment":         {timer.Group{Paused: true}, time.Millisecond, nil, 0, ""},
		"paused":                   {timer.Group{Paused: true}, time.Minute, nil, 0, "paused"},
		"no dispatcher":            {timer.Group{}, time.Minute, nil, 0, "no dispatcher"},
		"the host is busy":         {timer.Group{}, time.Minute, map[string]int{"h:80": timer.CallsPerHost}, 0, "host h:80 has 64"},
		"another host is busy":     {timer.Group{}, time.Minute, map[string]int{"x:80": timer.CallsPerHost}, 0, ""},
		"too few at once":          {timer.Group{MaxConcurrent: 2}, time.Minute, map[string]int{"h:80": 2}, 2, "max_concurrent is 2"},
		"its receivers hang":       {timer.Group{}, time.Minute, map[string]int{"x:80": 60}, timer.Calls / 2, "kept for other groups"},
		"too few a second":         {timer.Group{MaxPerSecond: 3}, time.Minute, map[string]int{"h:80": 1}, 1, "max_per_second is 3"},
		"under way, not known why": {timer.Group{}, time.Minute, map[string]int{"h:80": 1}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.g.Name, c.g.Slots = "g", 16
			last := map[string]*timer.Record{}
			s, r := record(0, timer.Created, "h:80", c.late)
			last[s] = r
			for i := range c.inside {
				s, r := record(i+1, timer.Firing, "h:80", 0)
				last[s] = r
			}
			if got := summarize(&c.g, last, c.firing, now).Why; !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%q, expected %q", got, c.want)
			}
		})
	}
}
