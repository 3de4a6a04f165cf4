package registry

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// An active shard whose events belong on the cold volume is retired, so that it can be closed and move; a closed one
// needs no step, whatever else retention asks comes first.
func TestColdShards(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 11, 10, 8, 0, 0, 0, time.UTC)
	now := last.AddDate(0, 0, 7).Add(1)
	for name, c := range map[string]struct {
		status  Status
		days    int
		keep    int
		created time.Time
		now     time.Time
		want    Step
		cold    bool
	}{
		"never":              {Active, 0, 0, last, now, Keep, false},
		"not yet":            {Active, 7, 0, last, now.Add(-1), Keep, false},
		"active":             {Active, 7, 0, last, now, RetireIt, true},
		"active and young":   {Active, 7, 0, now.Add(-time.Hour), now, Keep, true},
		"sealed":             {Sealed, 7, 0, last, now, Keep, true},
		"closed":             {Closed, 7, 0, last, now, Keep, true},
		"closed, past keep":  {Closed, 7, 8, last, now.AddDate(0, 0, 2), DropIt, true},
		"dropped":            {Dropped, 7, 8, last, now.AddDate(0, 0, 2), Keep, true},
		"a hundred years on": {Closed, schemas.MaxKeepDays, 0, last, now.AddDate(90, 0, 0), Keep, false},
	} {
		t.Run(name, func(t *testing.T) {
			topic := schemas.NewTopic("app")
			topic.ColdAfterDays, topic.KeepDays = c.days, c.keep
			s := Shard{Month: november, Status: c.status, MinTs: last.Add(-time.Hour).UnixNano(), MaxTs: last.UnixNano(), CreatedAt: c.created}
			if got, cold := s.NextStep(&topic, c.now), s.Cold(&topic, c.now); got != c.want || cold != c.cold {
				t.Errorf("%s: step %q and cold %v, want %q and %v", name, got, cold, c.want, c.cold)
			}
		})
	}
}
