package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/maintenance/billing"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) usageCloseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "close TOPIC",
		Short: "Publish the bills of a month, once",
		Long: `Publish the bills of a month of a topic of kind meter into a topic of kind log: an event of
type usage.bill for each space, or customer, provider or meter. Nothing is carried over to
the next month.

Each bill is published once. Called again it finishes what an interrupted call left, and
otherwise publishes nothing: what was billed is what stands in the topic. Bills that move
afterwards, by late diffs or an erasure, are published by "almanac usage corrections".`,
		Example: `  almanac topics apply bills
  almanac usage close bytes --month 2026-02 --into bills
  almanac query bills --where "type = 'usage.bill'"`,
		Args: arguments(1, 1),
		RunE: a.does(a.usageClose),
	}
	closeFlags(cmd)
	addFlags(cmd, orElse(textFlag("group-by", "a bill for each: space, customer, provider or meter; or space,customer or provider,customer"), usage.BySpace))
	flagsOf(cmd, &operations.Usage, "measure")
	outputFlag(cmd, asTable, asJSON)
	return cmd
}

func (a *app) usageCorrectionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "corrections TOPIC",
		Short: "Publish what moved in a month that was closed",
		Long: `Publish, for each bill of a closed month that is not what was published last, an event of
type usage.correction: the old numbers, the new ones, and the diffs that were stored since
and count (at most 100 of them). Called again it publishes what moved since.`,
		Example: `  almanac usage corrections bytes --month 2026-02 --into bills --dry-run
  almanac usage corrections bytes --month 2026-02 --into bills`,
		Args: arguments(1, 1),
		RunE: a.does(a.usageCorrections),
	}
	closeFlags(cmd)
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

// closeFlags are those of both verbs.
func closeFlags(cmd *cobra.Command) {
	addFlags(cmd,
		textFlag("month", "`MONTH` in UTC, as 2026-02 (required)"),
		textFlag("into", "`NAME` of the topic of kind log that has the bills (required)"),
		switchFlag("dry-run", "publish nothing, and say what would be"),
		orElse(textFlag("wait", "`TIME` without progress after which it no longer waits for what was accepted to be stored, and publishes nothing"), "15s"),
	)
}

func (a *app) usageClose(ctx context.Context, cmd *cobra.Command, args []string) error {
	o := format(cmd, asTable)
	f := reading{flags: cmd}
	req, err := closeRequest(&f, args[0])
	if err != nil {
		return err
	}
	req.GroupBy, req.Measure = usage.GroupBy(f.flag("group-by")), usage.Measure(f.flag("measure"))
	return a.withCloser(ctx, cmd, &req, func(d *billing.Closer) error {
		res, err := d.Close(ctx, req)
		if err != nil {
			return err
		}
		if o == asJSON {
			return a.printJSON(res)
		}
		switch {
		case res.Before:
			a.note("month %s of %s was closed into %s before, with %s: nothing is published", res.Month, res.Topic, res.Into, plural(res.Bills, "bill"))
		case req.DryRun:
			a.note("%s of month %s of %s would be published into %s", plural(res.Bills, "bill"), res.Month, res.Topic, res.Into)
		default:
			a.note("closed month %s of %s: %s, %d of them published into %s by this run", res.Month, res.Topic, plural(res.Bills, "bill"), res.Published, res.Into)
		}
		return nil
	})
}

func (a *app) usageCorrections(ctx context.Context, cmd *cobra.Command, args []string) error {
	o := format(cmd, asTable)
	f := reading{flags: cmd}
	req, err := closeRequest(&f, args[0])
	if err != nil {
		return err
	}
	return a.withCloser(ctx, cmd, &req, func(d *billing.Closer) error {
		res, err := d.Corrections(ctx, req)
		if err != nil {
			return err
		}
		switch o {
		case asJSON:
			return a.printJSON(res)
		case asNDJSON:
			return printLines(a, res.Corrections)
		}
		if len(res.Corrections) == 0 {
			a.note("nothing moved: %s of month %s of %s as published in %s", plural(res.Bills, "bill"), res.Month, res.Topic, res.Into)
			return nil
		}
		if req.DryRun {
			a.note("%s would be published into %s", plural(len(res.Corrections), "correction"), res.Into)
		} else {
			a.note("%s published into %s by this run", plural(res.Published, "correction"), res.Into)
		}
		t := newTable("meter", "provider", "space", "customer", "revision", "was", "now", "since")
		numbers(t, "revision", "was", "now")
		for i := range res.Corrections {
			c := &res.Corrections[i]
			t.AppendRow(table.Row{printable(c.Meter), printable(c.Provider), printable(c.Space), printable(c.Customer), c.Revision, c.Was.Usage, c.Now.Usage, printable(sinceText(c))})
		}
		return a.printTable(t)
	})
}

// sinceText says why a bill moved.
func sinceText(c *billing.Correction) string {
	switch n := len(c.Since); {
	case c.Unknown:
		return "unknown"
	case n == 0:
		return "rows taken out"
	case n == 1:
		return fmt.Sprintf("%s %+d", c.Since[0].Cause, c.Since[0].Delta)
	case c.More:
		return fmt.Sprintf("more than %s", plural(n, "diff"))
	default:
		return plural(n, "diff")
	}
}

func closeRequest(f *reading, topic string) (req billing.Request, err error) {
	req = billing.Request{Topic: topic, Into: f.flag("into"), DryRun: f.flag("dry-run") == "true"}
	for _, flag := range []string{"month", "into"} {
		if f.flag(flag) == "" {
			f.fail(flag, errors.New("it is required"))
		}
	}
	if f.err != nil {
		return req, f.err
	}
	if err := schemas.ValidateTopicName(req.Into); err != nil {
		f.fail("into", err)
	}
	if req.Month, err = schemas.ParseMonth(f.flag("month")); err != nil {
		f.fail("month", err)
	}
	return req, f.err
}

// withCloser waits until what the topic accepted is stored, which a bill is made of, and calls f.
func (a *app) withCloser(ctx context.Context, cmd *cobra.Command, req *billing.Request, f func(*billing.Closer) error) error {
	return a.whenStored(ctx, cmd, req.Topic, func(c *session, r *query.Reader, short bool) error {
		if !req.DryRun {
			a.tellTarget(c)
		}
		if short {
			return fmt.Errorf("month %s of %s: some of what was accepted is not stored yet, and nothing is published: run this again once `almanac doctor` is content", req.Month, req.Topic)
		}
		d, err := billing.New(billing.Config{NATS: c.nc, Registry: c.reg, Reader: r})
		if err != nil {
			return err
		}
		return f(d)
	})
}
