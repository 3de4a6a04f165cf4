package cleaner

import (
	"testing"
	"time"
)

// A walk begins when what ended the last one is stored and old enough, or may be.
func TestRests(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		m    progress
		upTo uint64
		want bool
	}{
		"the first walk":                       {progress{}, 0, false},
		"the next is not stored":               {progress{at: 5, next: 9}, 8, true},
		"the next is stored, and old":          {progress{at: 5, next: 9, stored: now.Add(-time.Minute)}, 9, false},
		"the next is stored, and young":        {progress{at: 5, next: 9, stored: now.Add(-59 * time.Second)}, 9, true},
		"what came since is stored":            {progress{at: 5, next: 9}, 9, false},
		"nothing is known of the next":         {progress{at: 5}, 5, false},
		"the next is old, and is not stored":   {progress{at: 5, next: 9, stored: now.Add(-time.Hour)}, 8, true},
		"the next is young, and is not stored": {progress{at: 5, next: 9, stored: now}, 8, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.m.mayWait(&walk{now: now, age: time.Minute, upTo: c.upTo}); got != c.want {
				t.Errorf("it rests: %t, expected %t", got, c.want)
			}
		})
	}
}
