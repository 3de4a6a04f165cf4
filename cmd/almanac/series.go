package main

import (
	"context"
	"encoding/csv"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/series"
)

func (a *app) seriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "series TOPIC",
		Short: "List the series of a topic of kind metric",
		Long: `List the series of a topic of kind metric: name, labels, unit, and the time of the first
and the last point. --names counts the series of each metric, --labels the values of each
label, and --values NAME the series of each value of one.

As "almanac sql" does, it first waits until what the topic accepted is stored. When nothing
is stored for --wait it answers without the rest, says so, and exits 3.`,
		Annotations: shortAnswer.declared(),
		Example: `  almanac series cpu --metric cpu --where "attributes.region = 'eu'"
  almanac series cpu --names
  almanac series cpu --metric cpu --labels
  almanac series cpu --metric cpu --values host`,
		Args: arguments(1, 1),
		RunE: a.does(a.series),
	}
	flagsOf(cmd, &operations.Series, "metric", "where", "from", "to", "limit", "wait")
	addFlags(cmd,
		switchFlag("names", "count the series of each metric"),
		switchFlag("labels", "count the values and series of each label"),
		textFlag("values", "count the series of each value of a `LABEL`, or of service, user_id or unit"),
	)
	outputFlag(cmd, asTable, asJSON, asNDJSON, asCSV)
	cmd.MarkFlagsMutuallyExclusive("names", "labels", "values")
	return cmd
}

func (a *app) series(ctx context.Context, cmd *cobra.Command, args []string) error {
	o := format(cmd, asTable)
	f := reading{flags: cmd}
	limit, _ := cmd.Flags().GetInt("limit")
	req := series.ListRequest{Topic: args[0], Metric: f.flag("metric"), Where: f.flag("where"), From: f.time("from"), To: f.until("to"), Limit: limit}
	if f.err != nil {
		return f.err
	}
	return a.answerOf(ctx, cmd, req.Topic, func(r *query.Reader) error {
		more, err := a.printSeries(ctx, cmd, series.New(r), req, o)
		if err == nil && more {
			a.note("there are more than %d; select fewer, or give --limit", limit)
		}
		return err
	})
}

func (a *app) printSeries(ctx context.Context, cmd *cobra.Command, r *series.Reader, req series.ListRequest, o string) (more bool, err error) {
	names, _ := cmd.Flags().GetBool("names")
	labels, _ := cmd.Flags().GetBool("labels")
	value, _ := cmd.Flags().GetString("values")
	var counts []series.Counted
	head := []string{"name", "series"}
	switch {
	case names:
		counts, more, err = r.Metrics(ctx, req)
	case labels:
		head = []string{"name", "values", "series"}
		counts, more, err = r.Labels(ctx, req)
	case value != "":
		counts, more, err = r.Values(ctx, req, value)
	default:
		list, more, err := r.List(ctx, req)
		if err != nil {
			return false, err
		}
		return more, printCells(a, o, list, seriesColumns, nil, seriesCells)
	}
	if err != nil {
		return false, err
	}
	return more, printCells(a, o, counts, head, head[1:], func(c *series.Counted) []string {
		cells := []string{c.Name, strconv.FormatUint(c.Values, 10), strconv.FormatUint(c.Series, 10)}
		if len(head) == 2 {
			cells = slices.Delete(cells, 1, 2)
		}
		return cells
	})
}

var seriesColumns = []string{"metric", "service", "user_id", "unit", "labels", "points", "first", "last"}

func seriesCells(s *series.Series) []string {
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		labels = append(labels, k+"="+s.Labels[k])
	}
	return []string{s.Metric, s.Service, s.Tenant, s.Unit, strings.Join(labels, " "), strings.Join(s.Points, " "), s.First.Format(time.RFC3339Nano), s.Last.Format(time.RFC3339Nano)}
}

// printCells prints values in the format that was asked for; right are the columns of numbers.
func printCells[T any](a *app, o string, rows []T, head, right []string, cells func(*T) []string) error {
	switch o {
	case asJSON:
		return a.printJSON(rows)
	case asNDJSON:
		return printLines(a, rows)
	case asCSV:
		w := csv.NewWriter(a.stdout)
		err := w.Write(head)
		for i := range rows {
			err = errors.Join(err, w.Write(cells(&rows[i])))
		}
		w.Flush()
		return errors.Join(err, w.Error())
	}
	t := newTable(head...)
	t.Style().Format.Header = text.FormatDefault
	numbers(t, right...)
	for i := range rows {
		row := table.Row{}
		for _, cell := range cells(&rows[i]) {
			row = append(row, printable(cell))
		}
		t.AppendRow(row)
	}
	return a.printTable(t)
}
