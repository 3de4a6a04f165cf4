package timerstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// creators is how many timers are made at once.
const creators = 32

// margin is how far ahead the next timer is due at the least: a busy machine creates more
// slowly than they fall due.
const margin = 5 * time.Second

// Create makes n timers of group "g", named by a prefix and a number, due as the function says
// or in a moment where that has passed.
func Create(ctx context.Context, t testing.TB, tm *timers.Timers, url, prefix string, n int, due func(i int) time.Time) {
	t.Helper()
	embeddedtest.Each(creators, n, func(i int) {
		for {
			at := due(i)
			if soon := time.Now().Add(margin); at.Before(soon) {
				at = soon
			}
			_, _, err := tm.Create(ctx, timers.Draft{Group: "g", ID: prefix + strconv.Itoa(i), Due: at, URL: url})
			if refused := (*timer.Refusal)(nil); errors.As(err, &refused) && refused.Code == timer.CodeDuePast {
				continue // it fell due before the server was asked for its time
			}
			if err != nil {
				t.Error(err)
			}
			return
		}
	})
}

// Lateness is how late timers were called.
type Lateness struct {
	late         []time.Duration
	early, twice int
}

// Add adds the calls of a timer.
func (l *Lateness) Add(due time.Time, came ...time.Time) {
	if len(came) != 1 {
		l.twice++
		return
	}
	d := came[0].Sub(due)
	if d < 0 {
		l.early++
	}
	l.late = append(l.late, d)
}

// String says it in a line.
func (l *Lateness) String() string {
	if len(l.late) == 0 {
		return fmt.Sprintf("none was called once, %d not", l.twice)
	}
	slices.Sort(l.late)
	at := func(p float64) time.Duration {
		return l.late[int(p*float64(len(l.late)-1))].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("late p50 %s, p90 %s, p99 %s, max %s; %d early, %d not called once", at(0.5), at(0.9), at(0.99), at(1), l.early, l.twice)
}
