package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A run measures one thing after the other. What cannot be measured costs no other: it is noted, and its error
// returned with those of the rest. A run whose context ends returns what it has.

// Loads offers one load after the other. each, where it is set, gets the report after every load.
func (s *Suite) Loads(ctx context.Context, points []LoadPoint, lc LoadConfig, note func(string), each func(LoadReport) error) (r LoadReport, failed error) {
	if r.Machine, failed = s.DescribeMachine(ctx); failed != nil {
		return r, failed
	}
	for _, p := range points {
		l, err := s.named(p.String()).Load(ctx, p, lc)
		if ctx.Err() != nil {
			return r, failed
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("load %s: %w", p, err))
			note(fmt.Sprintf("load %s: not measured: %v", p, err))
			continue
		}
		r.Loads = append(r.Loads, *l)
		if each != nil {
			if err := each(r); err != nil {
				return r, errors.Join(failed, err)
			}
		}
	}
	return r, failed
}

// Growths measures how costs grow. each gets the report after every size that grows.
func (s *Suite) Growths(ctx context.Context, growths []Growth, note func(string), each func(GrowthReport) error) (r GrowthReport, failed error) {
	began := time.Now()
	if r.Machine, failed = s.DescribeMachine(ctx); failed != nil {
		return r, failed
	}
	for _, g := range growths {
		curves, err := s.Grow(ctx, g, began)
		if ctx.Err() != nil {
			return r, failed
		}
		if err != nil {
			failed = errors.Join(failed, err)
			note(fmt.Sprintf("%s: not measured: %v", g.Name, err))
			continue
		}
		for _, c := range curves {
			note(fmt.Sprintf("%s (%s): %s", c.Name, c.Run, c.Order))
		}
		r.Curves = append(r.Curves, curves...)
		if err := each(r); err != nil {
			return r, errors.Join(failed, err)
		}
	}
	return r, failed
}

// Figures measures figures.
func (s *Suite) Figures(ctx context.Context, measures []Measure, note func(string)) (r Report, failed error) {
	began, others := time.Now(), WatchOthers()
	r.Size = s.Size
	if r.Machine, failed = s.DescribeMachine(ctx); failed != nil {
		return r, failed
	}
	for _, m := range measures {
		at := time.Now()
		figures, err := s.Measure(ctx, m)
		if ctx.Err() != nil {
			return r, failed
		}
		if err != nil {
			failed = errors.Join(failed, err)
			note(fmt.Sprintf("%s: not measured: %v", m.Name, err))
		}
		for _, g := range figures {
			note(fmt.Sprintf("%s (%.0f s): %s, %s: %s", g.Name, time.Since(at).Seconds(), g.Measured(), g.Bound(), strings.Trim(g.Result(), "*")))
		}
		r.Figures = append(r.Figures, figures...)
	}
	r.Seconds, r.OtherCores = time.Since(began).Seconds(), others.Cores()
	return r, failed
}

// Fallen returns a Fall for each ratio of the report that is much worse than the recorded one, and how many were
// compared. What was recorded and not measured now is left out. ErrNoReport: nothing can be compared.
func (r Report) Fallen(recorded Report) (compared int, err error) {
	old := slices.DeleteFunc(slices.Clone(recorded.Figures), func(o Figure) bool {
		return !slices.ContainsFunc(r.Figures, func(g Figure) bool { return g.Name == o.Name })
	})
	if r.Size != recorded.Size {
		return 0, fmt.Errorf("%w of this size: it is %s, and this run is %s", ErrNoReport, recorded.Size, r.Size)
	}
	if len(old) == 0 {
		return 0, fmt.Errorf("%w: none of the figures measured now is in it", ErrNoReport)
	}
	var falls []error
	for _, f := range Falls(r.Figures, old) {
		falls = append(falls, f)
	}
	return len(old), errors.Join(falls...)
}

// named returns a suite whose reports have a name: measures leave theirs empty.
func (s *Suite) named(name string) *Suite {
	out := *s
	out.Progress = func(_, phase string, done, of int) {
		if s.Progress != nil {
			s.Progress(name, phase, done, of)
		}
	}
	return &out
}
