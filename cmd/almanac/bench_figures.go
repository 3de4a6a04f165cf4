package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/bench"
)

// benchFigures measures the figures that --only names and prints them. One that misses its bar is not an error.
func (a *app) benchFigures(ctx context.Context, cmd *cobra.Command, s *settings, only []string, output string) error {
	measures, err := bench.Selected(only)
	if err != nil {
		return usageError{fmt.Errorf("--only: %w; a load belongs to --load: pass it too", err)}
	}
	size, _ := cmd.Flags().GetString("size")
	if !slices.Contains([]bench.Size{bench.Full, bench.Short, bench.Quick}, bench.Size(size)) {
		return usageError{fmt.Errorf("--size %q: expected full, short or quick", size)}
	}
	suite := &bench.Suite{Size: bench.Size(size), Environment: func(ctx context.Context) (*bench.Environment, error) {
		return bench.OpenEnvironment(ctx, benchEnvironment(s, a.stderr))
	}}
	if suite.Binary, err = os.Executable(); err != nil {
		return err
	}
	suite.Producer = suite.Binary
	if terminal(a.stderr) {
		suite.Progress = func(figure, phase string, done, of int) { a.benchProgress(figure+": "+phase, done, of) }
		defer func() { _, _ = fmt.Fprintln(a.stderr) }()
	}
	r, failed := suite.Figures(ctx, measures, func(text string) { a.note("%s", text) })
	if ctx.Err() != nil {
		return errors.Join(failed, errInterrupted)
	}
	if output == asJSON {
		return errors.Join(a.printJSON(r), failed)
	}
	t := newTable("Figure", "Measured", "Bar", "")
	for i := range r.Figures {
		f := &r.Figures[i]
		verdict := "ok"
		if !f.Pass {
			verdict = "missed"
		}
		t.AppendRow([]any{f.What, f.Measured(), f.Bound(), verdict})
	}
	tables := []table.Writer{t}
	for i := range r.Figures {
		if g := r.Figures[i].Grid; g != nil {
			grid := newTable(g.Head...)
			for _, row := range g.Rows {
				cells := make(table.Row, len(row))
				for j := range row {
					cells[j] = row[j]
				}
				grid.AppendRow(cells)
			}
			tables = append(tables, grid)
		}
	}
	for _, t := range tables {
		failed = errors.Join(failed, a.printTable(t))
	}
	return failed
}
