package evaluate

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
)

// maxUsual is how many groups have their range at an instant: each has a number of every day, 29 at most, and its name.
const maxUsual = 20_000

// unusual are what a meter measured within a window that ends at an instant, held against the same window on the days before.
func (e *Evaluator) unusual(ctx context.Context, r *alerts.Rule, at int64, known map[string]bool) (map[string]decide.Sample, error) {
	end, usual := time.Unix(0, at).UTC(), *r.Usual()
	of := map[string][]float64{} // what each group used, the newest first
	for day := range 1 + r.Days {
		err := e.window(ctx, r, end.Add(-time.Duration(day)*24*time.Hour), func(group, text string) error {
			v, err := numberOf(text)
			if err != nil {
				return err
			}
			if of[group] == nil {
				if len(of) >= maxUsual {
					return fmt.Errorf("more than %d values of by were measured within %d days: group by a field that has fewer", maxUsual, r.Days)
				}
				of[group] = make([]float64, 1+r.Days)
			}
			of[group][day] += v
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out, met := map[string]decide.Sample{}, 0
	for group, v := range of {
		s := decide.Sample{Value: v[0], Met: usual.Unusual(v[0], v[1:])}
		if s.Met {
			met++
		}
		if met > decide.MaxGroups {
			return nil, fmt.Errorf("more than %d values of by are unusual: raise unusual or least, or take by away", decide.MaxGroups)
		}
		if s.Met || known[group] {
			out[group] = s
		}
	}
	return out, nil
}
