package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/query"
)

// counts says that query is asked for numbers and not for events.
func counts(cmd *cobra.Command) bool {
	count, _ := cmd.Flags().GetBool("count")
	return count || cmd.Flags().Changed("histogram")
}

// stats is query with --count or --histogram.
func (a *app) stats(ctx context.Context, cmd *cobra.Command, topic string) error {
	o := format(cmd, a.forEvents())
	req, err := histogramRequest(cmd, topic)
	if err != nil {
		return err
	}
	req.Notice = a.notice
	return whenOfUsers(ctx, cmd, req.Topic, &req.Where, func(r *query.Reader) error {
		t, err := r.Histogram(ctx, req)
		if err != nil {
			return err
		}
		switch {
		case o == asJSON:
			return a.printJSON(t)
		case o == asNDJSON && req.Step.None():
			err = printLines(a, []map[string]uint64{{"count": t.Count}})
		case o == asNDJSON:
			err = printLines(a, t.Buckets)
		case req.Step.None():
			_, err = fmt.Fprintln(a.stdout, t.Count)
		default:
			if err = a.printTable(histogram(t, req.Step)); err == nil {
				a.note("%s events; shards read: %d", humanCount(t.Count), len(t.Shards))
			}
		}
		for _, n := range t.Notes {
			a.note("note: %s", n)
		}
		return err
	})
}

func histogramRequest(cmd *cobra.Command, topic string) (query.HistogramRequest, error) {
	f := reading{flags: cmd}
	req := query.HistogramRequest{Topic: topic, Where: f.flag("where"), By: f.flag("by"), From: f.time("from"), To: f.until("to")}
	count, _ := cmd.Flags().GetBool("count")
	if cmd.Flags().Changed("histogram") {
		var err error
		if req.Step, err = query.ParseStep(f.flag("histogram"), f.flag("zone")); err != nil {
			f.fail("histogram", err)
		}
		if count {
			f.fail("count", errors.New("--histogram counts already; take one of the two"))
		}
	} else if req.By != "" {
		f.fail("by", errors.New("it is for --histogram"))
	} else if f.flag("zone") != "" {
		f.fail("zone", errors.New("it is for --histogram"))
	}
	for _, flag := range []string{"cursor", "limit", "order", "fields", "explain"} {
		if cmd.Flags().Changed(flag) {
			f.fail(flag, errors.New("it is for pages of events, not for counting"))
		}
	}
	if format(cmd, "") == asCSV {
		f.fail("output", errors.New("csv is for pages of events, not for counting"))
	}
	return req, f.err
}

// longestBar is the longest bar, in characters: with time and count it fits 80.
const longestBar = 40

// histogram draws buckets, each a line.
func histogram(t *query.Histogram, step query.Step) table.Writer {
	values := map[string]uint64{}
	most := uint64(1)
	for _, b := range t.Buckets {
		most = max(most, b.Count)
		for v, n := range b.By {
			values[v] += n
		}
	}
	columns := slices.Sorted(maps.Keys(values))
	head, right := []string{"time"}, []string{"count"}
	for _, v := range columns {
		name := printable(v)
		if name == "" {
			name = "(empty)"
		}
		head, right = append(head, name), append(right, name)
	}
	w := newTable(append(head, "count", "")...)
	numbers(w, right...)
	w.Style().Format.Header = text.FormatDefault
	zone := cmp.Or(step.Zone, time.UTC)
	layout := time.RFC3339
	if step.Length%time.Second != 0 {
		layout = time.RFC3339Nano
	}
	for _, b := range t.Buckets {
		row := table.Row{b.At.In(zone).Format(layout)}
		for _, v := range columns {
			row = append(row, b.By[v])
		}
		w.AppendRow(append(row, b.Count, drawn(b.Count, most)))
	}
	return w
}

// drawn is n of most, in eighths of a character; what is more than nothing shows.
func drawn(n, most uint64) string {
	eighths := int(float64(n) / float64(most) * longestBar * 8)
	if n > 0 {
		eighths = max(eighths, 1)
	}
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return s
}
