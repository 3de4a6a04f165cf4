package main

import (
	"context"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/maintenance/seals"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [TOPIC]",
		Short: "Prove that nothing is lost and nothing doubled",
		Long: `Compare, shard by shard, the events that were accepted and routed with the rows,
ids, times and positions in ClickHouse, the dead letters, and what is on its way.
It fails and names the exact range if they differ.

Every event's id and time is compared, by sums that the frames carry. The other columns
are not: anonymising clears them for good. So a message or an attribute that was
changed in ClickHouse is not seen.

What was proven before is not examined again while nothing it rests on changed: a shard's
parts in ClickHouse, its last frame, its entry, its erasures. The last line says how much
that is and since when. --full examines all, and has ClickHouse compare every file of the
tables with its checksum: bytes that went bad on a disk since.

--fronts compares the documents of each topic of kind document too, with their rows:
each record of DOCS is stored or on its way, each stub's row is there, and nothing
newer is stored than DOCS has. It holds some 300 bytes a document. Of timers it
compares what each is in TIMERS with what it is by its history; some 700 bytes a timer.`,
		Annotations: exits{exitOK: "proven", exitFailed: "not proven, or failed"}.declared(),
		Args:        arguments(0, 1),
		RunE:        a.does(a.verify),
	}
	addFlags(cmd,
		textFlag("seals", "compare the rows with the seals in `FILE` too, - for stdin (see almanac audit seal)"),
		switchFlag("full", "examine all, also what was proven before, and every column's bytes"),
		switchFlag("fronts", "compare documents in DOCS and timers in TIMERS with their rows too"),
	)
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

func (a *app) verify(ctx context.Context, cmd *cobra.Command, args []string) error {
	return whenServed(ctx, cmd, func(c *session) error { return a.verifyOn(ctx, cmd, c, args) })
}

// verifyOn verifies what the servers have, and prints the report.
func (a *app) verifyOn(ctx context.Context, cmd *cobra.Command, c *session, args []string) error {
	v, err := verify.New(c.nc, c.reg, c.db)
	if err != nil {
		return err
	}
	if full, err := cmd.Flags().GetBool("full"); err != nil {
		return err
	} else if full {
		v = v.Full()
	}
	if fronts, err := cmd.Flags().GetBool("fronts"); err != nil {
		return err
	} else if fronts {
		v = v.Fronts()
	}
	rep, err := v.Run(ctx, optional(args))
	if err != nil {
		return err
	}
	var sealed []seals.Report
	if file, _ := cmd.Flags().GetString("seals"); file != "" {
		if sealed, err = a.checkSeals(ctx, c, file, optional(args)); err != nil {
			return err
		}
	}
	whole := verified{rep, sealed}
	printed, err := printRecord(a, format(cmd, asTable), whole)
	if !printed {
		err = a.printReport(rep)
	}
	if err != nil {
		return err
	}
	for _, p := range rep.Problems {
		a.note("  %s", p)
	}
	if t := rep.Taken; t.Shards > 0 || t.Frames > 0 {
		since := ""
		if !t.Since.IsZero() {
			since = " of " + t.Since.Format(time.RFC3339)
		}
		a.note("taken from the proof%s: %s with %d rows, headers of %d frames; --full examines all", since, counted(t.Shards, "shard"), t.Rows, t.Frames)
	}
	for i := range rep.Topics {
		t := &rep.Topics[i]
		if t.Repeats > 0 {
			a.note("topic %s: %s came before and must not count; %s leaves them out", t.Topic, plural(t.Repeats, "event"), t.Topic+schemas.ViewOnce)
		}
		if f := t.Front; f != nil {
			a.note("topic %s: %s in %s, %d that left it, %d on their way, %d differ from ClickHouse", t.Topic, counted(f.Hot, f.Noun), f.Stream, f.Cold, f.Waiting, f.Differ)
		}
		if f := t.Front; f != nil && f.Erasing > 0 {
			a.note("topic %s: the erasure %s is under way and takes %d of them: no problem is made of those. Run verify again when it has ended", t.Topic, f.Erasure, f.Erasing)
		}
		for _, d := range t.Derived {
			a.note("  %s", d)
		}
	}
	if rep.Foreign > 0 {
		a.note("%s on Almanac's subjects, published by none of its parts, kept as dead letters of %s: `almanac dead ls %s`", plural(rep.Foreign, "message"), schemas.NoTopic, schemas.NoTopic)
	}
	if n := rep.ByCount(); n > 0 {
		a.note("compared by count alone, not by id: %s, whose frames are gone", counted(n, "shard"))
	}
	kept := a.tellSeals(sealed)
	if !rep.OK() {
		a.note("not proven: %d missing, %d doubled, %s", rep.Missing, rep.Doubled, counted(len(rep.Problems), "problem"))
		return errSaid
	}
	rest := ""
	if rep.Dropped > 0 {
		rest = ", or was dropped by retention"
	}
	if rep.Erased > 0 {
		rest += ", or was erased"
	}
	if rep.Discarded > 0 {
		rest += ", or was discarded with its dead letter"
	}
	a.note("proven: every accepted event is stored once, on its way, or kept as a dead letter%s", rest)
	if !kept {
		return errSaid
	}
	return nil
}

// verified is the proof, and what became of the rows that kept seals are over.
type verified struct {
	*verify.Report
	Seals []seals.Report `json:"seals,omitempty"`
}

func (a *app) printReport(rep *verify.Report) error {
	columns := []string{"shards", "accepted", "stored", "pending", "dead", "missing", "doubled"}
	if rep.Dropped > 0 {
		columns = append(columns, "dropped")
	}
	if rep.Erased > 0 {
		columns = append(columns, "erased")
	}
	if rep.Discarded > 0 {
		columns = append(columns, "discarded")
	}
	t := newTable(append([]string{"topic"}, columns...)...)
	numbers(t, columns...)
	row := func(topic string, shards any, n verify.Totals) {
		r := table.Row{topic, shards, n.Accepted, n.Stored, n.Pending, n.Dead, n.Missing, n.Doubled}
		if rep.Dropped > 0 {
			r = append(r, n.Dropped)
		}
		if rep.Erased > 0 {
			r = append(r, n.Erased)
		}
		if rep.Discarded > 0 {
			r = append(r, n.Discarded)
		}
		t.AppendRow(r)
	}
	for _, r := range rep.Topics {
		row(r.Topic, len(r.Shards), r.Totals)
	}
	if len(rep.Topics) != 1 {
		row("(all)", "", rep.Totals)
	}
	return a.printTable(t)
}

// optional is the one argument, or "".
func optional(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
