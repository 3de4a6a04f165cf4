package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/bench"
)

// benchGrowth measures what grows and prints it. Where it is to be written, that is
// done after each size that grows: a run that is stopped keeps what it has. One that
// cannot be measured costs no other.
func (a *app) benchGrowth(ctx context.Context, suite *bench.Suite, f benchFlags, output string) error {
	growths, err := bench.SelectedGrowths(f.only)
	if err != nil {
		return usageError{err}
	}
	began := time.Now()
	var r bench.GrowthReport
	if r.Machine, err = suite.DescribeMachine(ctx); err != nil {
		return err
	}
	var failed error
	for _, g := range growths {
		curves, err := suite.Grow(ctx, g, began)
		if ctx.Err() != nil {
			return errors.Join(failed, errInterrupted)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			a.note("%s: not measured: %v", g.Name, err)
			continue
		}
		for _, c := range curves {
			a.note("%s (%s): %s", c.Name, c.Run, c.Order)
		}
		r.Curves = append(r.Curves, curves...)
		if f.write != "" {
			if err := r.Write(f.write); err != nil {
				return errors.Join(failed, err)
			}
		}
	}
	if output == asJSON {
		return errors.Join(a.printJSON(r), failed)
	}
	t := newTable("Cost", "Unit", "Over", "Size", "Cost at it", "Order of growth")
	for _, c := range r.Curves {
		for i, p := range c.Points {
			row := []any{"", "", "", fmt.Sprintf("%.0f", p.Size), fmt.Sprintf("%.3g", p.Cost), ""}
			if i == 0 {
				row[0], row[1], row[2], row[5] = c.What, c.Unit, c.Over, c.Order
			}
			t.AppendRow(row)
		}
	}
	return errors.Join(a.printTable(t), failed)
}

// growthOnly checks the names given to --only of --growth.
func growthOnly(names []string) error {
	for _, n := range names {
		if _, err := bench.SelectedGrowths([]string{n}); err != nil {
			return usageError{fmt.Errorf("--only: %w%s", err, suggestion(n, bench.GrowthNames(), ""))}
		}
	}
	return nil
}
