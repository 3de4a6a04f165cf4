package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/maintenance/deadletters"
)

func (a *app) deadRetryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry TOPIC",
		Short: "Send dead letters again, once what was wrong is mended",
		Long: `Send dead letters again, as the topic is declared now. Each arrives once, also
when this is interrupted and done again. A letter of which any event would be
refused again stays and is named. Events that were erased since are left out, and
those of a stale-seq letter that are stored already; --dry-run says how many.

Exit codes: 0 all sent, 3 some stay, 1 failed.`,
		Example: `  almanac dead retry app --dry-run
  almanac dead retry app --reason unknown-schema`,
		Args: arguments(1, 1),
		RunE: a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.resolveDead(ctx, cmd, args[0], false)
		}),
	}
	letterFlags(cmd)
	return cmd
}

func (a *app) deadDropCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop TOPIC --yes",
		Short: "Drop dead letters for good",
		Long: `Drop dead letters for good. Their events stay in the books: verify shows them as
discarded. --dry-run says which letters it would be.`,
		Example: `  almanac dead drop app --reason not-json --dry-run
  almanac dead drop app --seq 4711 --yes`,
		Args: arguments(1, 1),
		RunE: a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.resolveDead(ctx, cmd, args[0], true)
		}),
	}
	letterFlags(cmd)
	cmd.Flags().Bool("yes", false, "drop them")
	return cmd
}

func letterFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("reason", "", "only letters with this `REASON`")
	f.String("seq", "", "only the letter `NUMBER`")
	f.Bool("dry-run", false, "say what would be done and do nothing")
	outputFlag(cmd, asTable, asJSON, asNDJSON)
}

// resolveDead sends a topic's dead letters again, or drops them.
func (a *app) resolveDead(ctx context.Context, cmd *cobra.Command, topic string, drop bool) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	f := reading{flags: cmd}
	q := deadletters.Request{Topic: topic, Reason: f.flag("reason"), Drop: drop, DryRun: f.flag("dry-run") == "true"}
	if text := f.flag("seq"); text != "" {
		if q.Seq, err = strconv.ParseUint(text, 10, 64); err != nil || q.Seq == 0 {
			return usageError{fmt.Errorf("--seq: %q is not a number of a dead letter; `almanac dead ls` lists them", text)}
		}
	}
	if drop && !q.DryRun && f.flag("yes") != "true" {
		return usageError{errors.New("dead drop cannot be undone: look with --dry-run, then give --yes")}
	}
	if _, err := format(cmd, asTable, asTable, asJSON, asNDJSON); err != nil {
		return err
	}
	var c *session
	if drop {
		c, err = a.openNATS(ctx, s)
	} else {
		c, _, err = open(ctx, s)
	}
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if !q.DryRun {
		a.tellTarget(c)
	}
	desk, err := deadletters.New(ctx, c.nc, c.reg, []byte(s.PIIKey), c.db)
	if err != nil {
		return err
	}
	var rows []deadletters.Outcome
	kept, events, more := 0, 0, 0
	err = desk.Settle(ctx, q, func(o deadletters.Outcome) error {
		if o.Did == deadletters.Kept {
			kept++
		} else {
			events += o.Events
		}
		if len(rows) < maxOutcomes {
			rows = append(rows, o)
		} else {
			more++
		}
		return nil
	})
	if err == nil && len(rows) == 0 {
		_, err = c.reg.Topic(ctx, q.Topic) // a topic that is not declared may have dead letters; without any it is a slip
	}
	if err != nil && len(rows) == 0 {
		return err
	}
	err = errors.Join(err, printRows(a, cmd, rows, func() table.Writer { return outcomeTable(rows) }))
	if more > 0 {
		a.note("and %s more", plural(more, "dead letter"))
	}
	did := deadletters.Retried
	if drop {
		did = deadletters.Dropped
	}
	if q.DryRun {
		did = "would be " + did
	}
	a.note("%s with %s %s, %d kept", plural(len(rows)+more-kept, "dead letter"), plural(events, "event"), did, kept)
	if err == nil && kept > 0 {
		return errPartial
	}
	return err
}

// maxOutcomes bounds the letters that are listed.
const maxOutcomes = 10_000

func outcomeTable(rows []deadletters.Outcome) table.Writer {
	t := newTable("seq", "reason", "events", "did", "why")
	numbers(t, "seq", "events")
	for _, o := range rows {
		t.AppendRow(table.Row{o.Seq, o.Reason, o.Events, o.Did, printable(o.Why)})
	}
	return t
}

// openNATS connects to NATS alone.
func (a *app) openNATS(ctx context.Context, s *settings) (*session, error) {
	d, err := findEndpoints(s, false)
	if err != nil {
		return nil, err
	}
	return openRegistry(ctx, s, d)
}
