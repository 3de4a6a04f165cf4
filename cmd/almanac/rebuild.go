package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/tables"
)

func (a *app) rebuildCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rebuild TOPIC --yes",
		Short: "Rebuild a topic's table from the streams, while events flow",
		Long: `Rebuild a topic's table, as it would be declared now, and put it in the old
one's place: from SHARDS as far as it goes back, by copying the old table's rows
beyond. Events go on flowing; for the last rows sinks wait some seconds.

The swap is refused unless every shard has the same rows in both tables, or what
its frames brought. The old table is kept as TOPIC_before_TIME. It still has what is
erased later, so drop it when all is well: --drop-old-tables drops every such table of
the topic and rebuilds nothing.
What is derived from the rows (copies, sums, series) is derived again; --derived does
that alone, and leaves the table as it is.
When this is killed, run it again: it ends what was begun. --abort gives it up.`,
		Example: `  almanac rebuild app --dry-run
  almanac rebuild app --yes
  almanac rebuild app --drop-old-tables --yes
  almanac rebuild usage --derived --yes`,
		Args: arguments(1, 1),
		RunE: a.does(a.rebuild),
	}
	addFlags(cmd,
		switchFlag("dry-run", "say what would be done and do nothing"),
		switchFlag("yes", "do it"),
		switchFlag("drop-old", "drop the old table at the end"),
		switchFlag("drop-old-tables", "drop the tables that earlier rebuilds kept, and rebuild nothing"),
		switchFlag("derived", "derive copies, sums and series again, and leave the table as it is"),
		switchFlag("abort", "give up a rebuild that was killed"),
	)
	cmd.MarkFlagsMutuallyExclusive("dry-run", "abort")
	cmd.MarkFlagsMutuallyExclusive("derived", "drop-old-tables", "abort")
	cmd.MarkFlagsMutuallyExclusive("derived", "drop-old")
	cmd.MarkFlagsMutuallyExclusive("drop-old-tables", "drop-old")
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

func (a *app) rebuild(ctx context.Context, cmd *cobra.Command, args []string) error {
	f := reading{flags: cmd}
	dry, abort := f.flag("dry-run") == "true", f.flag("abort") == "true"
	if !dry && !abort && f.flag("yes") != "true" {
		return usageError{errors.New("rebuild replaces a table, or what is derived from it: look with --dry-run, then give --yes")}
	}
	return whenServed(ctx, cmd, func(c *session) error { return a.rebuildTable(ctx, cmd, c, args[0], dry, abort) })
}

// rebuildTable rebuilds the table of a topic, gives a rebuild up, or says what it would do.
func (a *app) rebuildTable(ctx context.Context, cmd *cobra.Command, c *session, topic string, dry, abort bool) error {
	f := reading{flags: cmd}
	if !dry {
		a.tellTarget(c)
	}
	cfg := rebuild.Config{NATS: c.nc, Registry: c.reg, DB: c.db}
	switch {
	case f.flag("drop-old-tables") == "true":
		return a.dropOldTables(ctx, cmd, c, topic, dry)
	case f.flag("derived") == "true":
		return a.deriveAgain(ctx, cmd, cfg, topic, dry)
	case abort:
		if err := rebuild.Abort(ctx, cfg, topic); err != nil {
			return err
		}
		a.note("given up: %s takes inserts, nothing was changed", topic)
		return nil
	case dry:
		p, err := rebuild.Look(ctx, cfg, topic)
		if err != nil {
			return err
		}
		return printRows(a, cmd, []rebuild.Plan{p}, func() table.Writer {
			t := newTable("topic", "shards", "rows", "from frames", "unfinished")
			numbers(t, "shards", "rows", "from frames")
			t.AppendRow(table.Row{p.Topic, p.Shards, p.Rows, p.FromFrames, p.Unfinished})
			return t
		})
	}
	drawn := time.Time{}
	if terminal(a.stderr) {
		cfg.Progress = func(done, total uint64) {
			if now := time.Now(); now.Sub(drawn) >= progressEvery || done == total {
				drawn = now
				_, _ = fmt.Fprintf(a.stderr, clearLine+"%s  %s of %s rows", bar(min(1, float64(done)/float64(max(total, 1)))), humanCount(done), humanCount(total))
			}
		}
	}
	res, err := rebuild.Run(ctx, cfg, topic, f.flag("drop-old") == "true")
	if !drawn.IsZero() {
		a.note("")
	}
	if err != nil {
		if ctx.Err() != nil {
			a.note("interrupted; run it again to end it, or with --abort to give it up")
			return errInterrupted
		}
		return err
	}
	err = printRows(a, cmd, []rebuild.Result{res}, func() table.Writer {
		t := newTable("topic", "rows", "from frames", "copied", "sinks waited", "old table")
		numbers(t, "rows", "from frames", "copied")
		t.AppendRow(table.Row{res.Topic, res.Rows, res.Inserted, res.Copied, res.Frozen.Round(time.Millisecond), res.Before})
		return t
	})
	if res.Before != "" {
		a.note("%s is kept; when all is well: almanac rebuild %s --drop-old-tables --yes", res.Before, topic)
	}
	return err
}

// oldTable is a table beside a topic's, and what became of it.
type oldTable struct {
	Table string `json:"table"`
	Did   string `json:"did"`
}

// dropOldTables drops what finished rebuilds of a topic kept.
func (a *app) dropOldTables(ctx context.Context, cmd *cobra.Command, c *session, topic string, dry bool) error {
	if _, err := c.reg.Topic(ctx, topic); err != nil {
		return err
	}
	kept, err := c.db.Kept(ctx, topic)
	if err != nil {
		return err
	}
	kept = slices.DeleteFunc(kept, func(name string) bool { return strings.HasSuffix(name, tables.FreshSuffix) })
	rows := make([]oldTable, 0, len(kept))
	for _, name := range kept {
		did := "would be dropped"
		if !dry {
			if err := c.db.Drop(ctx, name); err != nil {
				return err
			}
			did = "dropped"
		}
		rows = append(rows, oldTable{name, did})
	}
	if len(rows) == 0 {
		a.note("no rebuild of %s kept a table", topic)
	}
	return a.printDid(cmd, rows)
}

// deriveAgain empties what is derived from a topic's rows.
func (a *app) deriveAgain(ctx context.Context, cmd *cobra.Command, cfg rebuild.Config, topic string, dry bool) error {
	names, err := rebuild.Derived(ctx, cfg, topic, dry)
	if err != nil {
		return err
	}
	did := "would be derived again"
	if !dry {
		did = "is derived again"
		a.note("sinks derive them again; answers are the same meanwhile")
	}
	rows := make([]oldTable, len(names))
	for i, name := range names {
		rows[i] = oldTable{name, did}
	}
	return a.printDid(cmd, rows)
}

// printDid prints tables and what became of them.
func (a *app) printDid(cmd *cobra.Command, rows []oldTable) error {
	return printRows(a, cmd, rows, func() table.Writer {
		t := newTable("table", "did")
		for _, r := range rows {
			t.AppendRow(table.Row{r.Table, r.Did})
		}
		return t
	})
}
