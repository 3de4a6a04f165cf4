package timers

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas/timer"
)

// TestChangeDue holds that a due time that passed since it was asked for is the time of the write.
func TestChangeDue(t *testing.T) {
	t.Parallel()
	asked := time.Unix(1000, 0)
	for name, c := range map[string]struct{ due, written, want time.Duration }{
		"ahead":                       {time.Minute, time.Second, time.Minute},
		"now":                         {0, time.Second, time.Second},
		"past within the bound":       {-time.Millisecond, time.Second, time.Second},
		"it passed meanwhile":         {time.Second, time.Minute, time.Minute},
		"the clock was set back then": {0, -time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			due := asked.Add(c.due)
			got, err := Change{Due: &due}.on(nil, timer.Group{}, asked, asked.Add(c.written).UnixNano())
			if want := asked.Add(c.want).UnixNano(); err != nil || got.Due == nil || *got.Due != want {
				t.Errorf("%v, %v, expected %d", got.Due, err, want)
			}
		})
	}
}
