package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
)

func (a *app) usageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "usage TOPIC",
		Short: "Bill what a topic of kind meter measured",
		Long: `Bill what a topic of kind meter measured between --from (inclusive) and --to (exclusive):
the size before and after, and its integral over time in units × milliseconds. Diffs
with the same meter, provider, space and cause count once, the earliest of them.

--measure sum adds the deltas between the two instead, for meters without a size, and count
counts them. --group-by gives a bill for each space, provider, customer, meter, day or
month, or for each customer of a space (space,customer) or of a provider. --diffs lists what a bill stands on. --at TIME says what is held at an instant.

As "almanac sql" does, it first waits until what the topic accepted is stored. When nothing
is stored for --wait it answers without the rest, says so, and exits 3.`,
		Annotations: exits{exitFailed: "failed, or --check found a difference", exitPartial: shortAnswer[exitPartial]}.declared(),
		Example: `  almanac usage bytes --space s1 --from 2026-02-01 --to 2026-03-01
  almanac usage bytes --from 2026-02-01 --to now --group-by customer -o csv
  almanac usage bytes --space s1 --from 2026-02-01 --to 2026-03-01 --group-by day
  almanac usage bytes --space s1 --from 2026-02-10 --to 2026-02-20 --diffs
  almanac usage bytes --at 2026-02-10T12:00:00Z --group-by space
  almanac usage bytes --from 2026-02-01 --to 2026-03-01 --group-by space --check`,
		Args: arguments(1, 1),
		RunE: a.does(a.usage),
	}
	flagsOf(cmd, &operations.Usage, "meter", "provider", "space", "customer", "from", "to", "at", "group_by", "measure", "wait")
	addFlags(cmd,
		switchFlag("diffs", "list the diffs between the two times that count, the oldest first"),
		switchFlag("check", "compare marks and sums with the rows grouped by cause, and fail when they differ"),
	)
	for _, name := range []string{"limit", "cursor"} {
		p := flagOf(&operations.UsageDiffs, name)
		p.Help = "with --diffs: " + p.Help
		addFlags(cmd, p)
	}
	outputFlag(cmd, asTable, asJSON, asNDJSON, asCSV)
	for _, other := range []string{"from", "to", "measure", "diffs", "check"} {
		cmd.MarkFlagsMutuallyExclusive("at", other)
	}
	cmd.AddCommand(a.usageCloseCommand(), a.usageCorrectionsCommand())
	return cmd
}

func (a *app) usage(ctx context.Context, cmd *cobra.Command, args []string) error {
	o := format(cmd, asTable)
	if cmd.Flags().Changed("at") {
		q, err := sizeRequest(cmd, args[0])
		if err != nil {
			return err
		}
		return a.answerOf(ctx, cmd, q.Topic, func(r *query.Reader) error {
			u := usage.New(r)
			if err := a.usageSizes(ctx, u, q, o); err != nil {
				return err
			}
			return a.tellTooLate(ctx, u, q.Topic, q.At)
		})
	}
	req, err := usageRequest(cmd, args[0])
	if err != nil {
		return err
	}
	diffs, _ := cmd.Flags().GetBool("diffs")
	check, _ := cmd.Flags().GetBool("check")
	return a.answerOf(ctx, cmd, req.Topic, func(r *query.Reader) error {
		u := usage.New(r)
		switch {
		case diffs:
			return a.usageDiffs(ctx, cmd, u, req, o)
		case check:
			return a.usageCheck(ctx, u, req)
		}
		if err := a.usageBills(ctx, u, req, o); err != nil {
			return err
		}
		found, err := u.Contradictions(ctx, req)
		if err == nil && found != nil {
			a.note("%s; --check and --diffs name them", found)
		}
		if err != nil {
			return err
		}
		return a.tellTooLate(ctx, u, req.Topic, req.To)
	})
}

func usageRequest(cmd *cobra.Command, topic string) (usage.Request, error) {
	f := reading{flags: cmd}
	req := usage.Request{
		Topic: topic, Meter: f.flag("meter"), Provider: f.flag("provider"), Space: f.flag("space"), Customer: f.flag("customer"),
		From: f.time("from"), To: f.until("to"), GroupBy: usage.GroupBy(f.flag("group-by")), Measure: usage.Measure(f.flag("measure")),
	}
	for _, flag := range []string{"from", "to"} {
		if f.flag(flag) == "" {
			f.fail(flag, errors.New("it is required, or --at"))
		}
	}
	if diffs, _ := cmd.Flags().GetBool("diffs"); diffs && req.GroupBy != usage.Total {
		f.fail("group-by", errors.New("it is for bills, not for --diffs"))
	}
	return req, f.err
}

// usageBills prints bills as they come, a table and a document at the end.
func (a *app) usageBills(ctx context.Context, u *usage.Reader, req usage.Request, o string) error {
	switch o {
	case asNDJSON:
		return u.Bills(ctx, req, func(b usage.Bill) error { return printLines(a, []usage.Bill{b}) })
	case asCSV:
		w := csv.NewWriter(a.stdout)
		if err := w.Write(billColumns); err != nil {
			return err
		}
		err := u.Bills(ctx, req, func(b usage.Bill) error { return w.Write(billCells(&b)) })
		w.Flush()
		return errors.Join(err, w.Error())
	}
	rep, err := u.Report(ctx, req)
	if err != nil {
		return err
	}
	if o == asJSON {
		if req.GroupBy == usage.Total && len(rep.Bills) == 1 {
			return a.printJSON(rep.Bills[0])
		}
		return a.printJSON(rep.Bills)
	}
	t := newTable(billColumns...)
	numbers(t, billColumns[6:12]...)
	for i := range rep.Bills {
		row := table.Row{}
		for _, cell := range billCells(&rep.Bills[i]) {
			row = append(row, printable(cell))
		}
		t.AppendRow(row)
	}
	return a.printTable(t)
}

var billColumns = []string{"meter", "provider", "space", "customer", "from", "to", "size_start", "size_end", "usage", "average", "causes", "repeats", "anomaly"}

func billCells(b *usage.Bill) []string {
	anomaly := ""
	if b.Anomaly {
		anomaly = "true"
	}
	return []string{b.Meter, b.Provider, b.Space, b.Customer, b.From.Format(time.RFC3339Nano), b.To.Format(time.RFC3339Nano), b.SizeStart, b.SizeEnd, b.Usage, b.Average,
		strconv.FormatUint(b.Causes, 10), strconv.FormatUint(b.Repeats, 10), anomaly}
}

// usageDiffs prints a page of diffs.
func (a *app) usageDiffs(ctx context.Context, cmd *cobra.Command, u *usage.Reader, req usage.Request, o string) error {
	limit, _ := cmd.Flags().GetInt("limit")
	cursor, _ := cmd.Flags().GetString("cursor")
	page, err := u.Diffs(ctx, req, limit, cursor)
	if err != nil {
		return err
	}
	page.Cursor = nextPage(cmd, page.Cursor)
	columns := []string{"time", "meter", "provider", "space", "customer", "cause", "delta"}
	cells := func(d *usage.Diff) []string {
		return []string{d.Time.Format(time.RFC3339Nano), d.Meter, d.Provider, d.Space, d.Customer, d.Cause, strconv.FormatInt(d.Delta, 10)}
	}
	switch o {
	case asJSON:
		return a.printJSON(page)
	case asNDJSON:
		err = printLines(a, page.Diffs)
	case asCSV:
		w := csv.NewWriter(a.stdout)
		err = w.Write(columns)
		for i := range page.Diffs {
			err = errors.Join(err, w.Write(cells(&page.Diffs[i])))
		}
		w.Flush()
		err = errors.Join(err, w.Error())
	default:
		t := newTable(columns...)
		numbers(t, "delta")
		for i := range page.Diffs {
			row := table.Row{}
			for _, cell := range cells(&page.Diffs[i]) {
				row = append(row, printable(cell))
			}
			t.AppendRow(row)
		}
		err = a.printTable(t)
	}
	if err == nil && o != asJSON {
		a.tellContradictions(page.Contradictions)
	}
	if err == nil && page.Cursor != "" {
		a.note("there are more: --cursor %s", page.Cursor)
	}
	return err
}

// usageCheck compares the two ways to the same bills.
func (a *app) usageCheck(ctx context.Context, u *usage.Reader, req usage.Request) error {
	told := 0
	n, err := u.Check(ctx, req, func(marks, cause *usage.Bill) {
		if told++; told > maxDiffering {
			return
		}
		a.note("differs: marks and sums say %s, the rows %s", billText(marks), billText(cause))
	})
	if err != nil {
		return err
	}
	a.note("the same by marks and sums and by cause: %s", plural(n, "bill"))
	found, err := u.Contradictions(ctx, req)
	if err == nil {
		a.tellContradictions(found)
	}
	return err
}

// tellContradictions names copies that say something else than the diff that counts.
func (a *app) tellContradictions(found *usage.Contradictions) {
	if found == nil {
		return
	}
	a.note("%s", found)
	said := func(d *usage.Diff) string {
		return fmt.Sprintf("delta %d, customer %q, %s", d.Delta, d.Customer, d.Time.Format(time.RFC3339Nano))
	}
	for i := range found.Pairs[:min(len(found.Pairs), maxDiffering)] {
		p := &found.Pairs[i]
		a.note("  %s %s %s, cause %s: counts %s; a copy says %s", printable(p.Counts.Meter), printable(p.Counts.Provider), printable(p.Counts.Space), printable(p.Counts.Cause), said(&p.Counts), said(&p.Copy))
	}
}

// maxDiffering bounds the differences that are told.
const maxDiffering = 20

func billText(b *usage.Bill) string {
	if b == nil {
		return "nothing"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", b.Meter, b.Provider, b.Space, b.Customer)) +
		fmt.Sprintf(" %s to %s, usage %s, %s", b.SizeStart, b.SizeEnd, b.Usage, plural(b.Causes, "cause"))
}
