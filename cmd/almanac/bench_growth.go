package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/almanac-events/almanac/bench"
)

// benchGrowth measures what grows, prints it, and writes the table and the plots
// where that was asked for.
func (a *app) benchGrowth(ctx context.Context, suite *bench.Suite, f benchFlags, output string) error {
	var r bench.GrowthReport
	var err error
	began, others := time.Now(), bench.WatchOthers()
	if r.Machine, err = suite.DescribeMachine(ctx); err != nil {
		return err
	}
	r.Curves, err = suite.Growths(ctx)
	if ctx.Err() != nil {
		return errors.Join(err, errInterrupted)
	}
	if err != nil {
		return err
	}
	r.Size, r.OtherCores = f.size, others.Cores()
	r.Seconds = time.Since(began).Seconds()
	if output == asJSON {
		err = a.printJSON(r)
	} else {
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
		err = a.printTable(t)
	}
	if f.write == "" || err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(f.write, "growth.json"), append(text, '\n'), 0o644)
	for _, c := range r.Curves {
		err = errors.Join(err, os.WriteFile(filepath.Join(f.write, "growth-"+c.Name+".svg"), []byte(c.Plot()), 0o644))
	}
	return errors.Join(err, bench.ReplaceSection(filepath.Join(f.write, "README.md"), "growth", r.Markdown()))
}
