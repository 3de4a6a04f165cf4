package evaluate

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// midInterval is a group whose rules of an hour have their last instant some time ago and the next one not soon, and that last one.
func midInterval(now time.Time) (group string, at time.Time) {
	for i := 0; ; i++ {
		group = "g" + strconv.Itoa(i)
		at = time.Unix(0, (&alerts.Rule{Interval: alerts.Span(time.Hour)}).Last(group, now.UnixNano()))
		if ago := now.Sub(at); ago > 5*time.Minute && ago < 15*time.Minute {
			return group, at
		}
	}
}

// TestRecordedOnceThoughKilled holds that a process that is killed after it wrote samples, and before it saved that, has the next one write those of
// the same instant: none counts twice, and none of the rules after it is left out.
func TestRecordedOnceThoughKilled(t *testing.T) {
	t.Parallel()
	for after, name := range []string{"after the first rule", "after the last"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, schemas.NewTopicOf(kinds.Metric, "metrics"))
			group, at := midInterval(time.Now())
			g.apply(fmt.Sprintf(`groups: [{name: %s, interval: 1h, topic: metrics, rules: [{record: m, expr: 'sum by (room) (temperature)'}, {record: twice, expr: 2 * m}]}]`, group))
			for i, host := range []string{"a", "b"} {
				ev, err := (&metric.Point{Name: "temperature", Points: metric.Gauge, Time: at.Add(-time.Second), Value: float64(40 + i), Labels: []schemas.Attr{schemas.String("host", host), schemas.String("room", "r1")}}).Event()
				if err != nil {
					t.Fatal(err)
				}
				g.send("metrics", ev)
			}
			var points atomic.Int64
			dead := make(chan struct{})
			e := g.evaluator(func(point string) {
				if point == "recorded" && points.Add(1) == int64(after+1) {
					close(dead)
					runtime.Goexit() // what asks ends, and nothing of it is saved
				}
			})
			hourBefore := at.Add(-time.Hour).UnixNano()
			g.rounds(e, func() error {
				r := e.run("metrics")
				if r == nil {
					return errors.New("it is not loaded")
				}
				for _, rr := range r.rules { // as if it had been evaluated an hour before
					rr.asked.At = hourBefore
				}
				return r.save(g.ctx)
			})
			g.rounds(e, func() error {
				select {
				case <-dead:
					return nil
				default:
					return errors.Join(errors.New("it has not died"), e.askAgain(hourBefore))
				}
			})
			e.close()
			next := g.evaluator(nil)
			g.rounds(next, func() error {
				if err := next.askAgain(hourBefore); err != nil {
					return err
				}
				status, err := g.Status(g.ctx)
				if err != nil {
					return err
				}
				for _, r := range status[0].Rules {
					if !r.UpTo.Equal(at) || r.Recorded != 1 || r.Wrong != "" {
						return fmt.Errorf("the status is %+v, want one series at %s", r, at)
					}
				}
				return g.onceAt(at)
			})
		})
	}
}

// askAgain has rules that could not be evaluated, as on a machine that is busy, asked for at the same instant. It is an error until no rule waits.
func (e *Evaluator) askAgain(before int64) error {
	r := e.run("metrics")
	if r == nil {
		return errors.New("it is not loaded")
	}
	for _, rr := range r.rules {
		if rr.asked.Error != "" {
			rr.asked.At = before
			return errors.New(rr.asked.Error)
		}
		if rr.asked.At == before {
			return errors.New("it is not answered")
		}
	}
	return nil
}

// onceAt is nil where each of the two metrics has one series with one sample, of an instant.
func (g *rig) onceAt(at time.Time) error {
	for name, want := range map[string]float64{"m": 81, "twice": 162} {
		series, err := g.series(name)
		if err != nil {
			return err
		}
		if points := series[`{__name__="`+name+`", room="r1"}`]; len(series) != 1 || len(points) != 1 || points[at] != want {
			return fmt.Errorf("%s is %v, want one sample of %v at %s", name, series, want, at)
		}
	}
	return nil
}
