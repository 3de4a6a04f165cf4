package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) deadRetryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry TOPIC",
		Short: "Send dead letters again, once what was wrong is mended",
		Long: `Send dead letters again, as the topic is declared now. Each arrives once, also
when this is interrupted and done again. A letter of which any event would be
refused again stays and is named. Events that were erased since are left out, and
those of a stale-seq letter that are stored already; --dry-run says how many.
Two runs at once end well: a letter that the other run counted is listed as taken.`,
		Annotations: lettersStay.declared(),
		Example: `  almanac dead retry app --dry-run
  almanac dead retry app --reason unknown-schema`,
		Args: arguments(1, 1),
		RunE: a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.resolveDead(ctx, cmd, args[0], false)
		}),
	}
	letterFlags(cmd, &operations.RetryLetters)
	return cmd
}

func (a *app) deadDropCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop TOPIC --yes",
		Short: "Drop dead letters for good",
		Long: `Drop dead letters for good. Their events stay in the books: verify shows them as
discarded. --dry-run says which letters it would be.`,
		Annotations: lettersStay.declared(),
		Example: `  almanac dead drop app --reason not-json --dry-run
  almanac dead drop app --seq 4711@2026-11-20T12:00:00.123456789Z --yes`,
		Args: arguments(1, 1),
		RunE: a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.resolveDead(ctx, cmd, args[0], true)
		}),
	}
	letterFlags(cmd, &operations.DropLetters)
	addFlags(cmd, switchFlag("yes", "drop them"))
	return cmd
}

func letterFlags(cmd *cobra.Command, op *operations.Operation) {
	flagsOf(cmd, op, "reason", "seq", "dry_run")
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
		if q.Letter, err = schemas.ParseName(text); err != nil {
			return usageError{fmt.Errorf("--seq: %q: %w; `almanac dead ls` lists them", text, err)}
		}
	}
	if drop && !q.DryRun && q.Letter.Seq > 0 && q.Letter.Stored == 0 {
		return usageError{fmt.Errorf("--seq: %d alone may be another letter by now, because NATS gives numbers again where SHARDS loses its end: give NUMBER@TIME, as `almanac dead ls` prints it", q.Letter.Seq)}
	}
	if drop && !q.DryRun && f.flag("yes") != "true" {
		return usageError{errors.New("dead drop cannot be undone: look with --dry-run, then give --yes")}
	}
	var c *session
	if drop {
		c, err = openNATS(ctx, s)
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
	dead, err := deadletters.New(ctx, c.nc, c.reg, []byte(s.PIIKey), c.db)
	if err != nil {
		return err
	}
	var rows []deadletters.Outcome
	kept, taken, events, more := 0, 0, 0, 0
	err = dead.Resolve(ctx, q, func(o deadletters.Outcome) error {
		switch o.Did {
		case deadletters.Kept:
			kept++
		case deadletters.Taken:
			taken++
		default:
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
	a.note("%s with %s %s, %d kept", plural(len(rows)+more-kept-taken, "dead letter"), plural(events, "event"), did, kept)
	if taken > 0 {
		a.note("%s taken by another process at the same time: each was sent or dropped once", plural(taken, "dead letter"))
	}
	if err == nil && kept > 0 {
		return errPartial
	}
	return err
}

// maxOutcomes bounds the letters that are listed.
const maxOutcomes = 10_000

func outcomeTable(rows []deadletters.Outcome) table.Writer {
	t := newTable("letter", "reason", "events", "did", "why")
	numbers(t, "events")
	for _, o := range rows {
		t.AppendRow(table.Row{o.ID, o.Reason, o.Events, o.Did, printable(o.Why)})
	}
	return t
}
