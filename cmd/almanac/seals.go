package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/maintenance/seals"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) auditCommand() *cobra.Command {
	seal := &cobra.Command{
		Use:   "seal TOPIC",
		Short: "Print the seals over a topic's closed shards",
		Long: `Print the seals of a topic of kind audit, the oldest first. When a shard closes, a seal with a
digest over its rows is chained to the one before it. An erasure, anonymising and retention seal
the shard again and name the seal that they replace.

Keep what -o ndjson prints outside of this Almanac. "almanac verify --seals FILE" then tells
whether sealed rows were changed. Without a copy elsewhere a seal proves nothing against those
who can write to ClickHouse and NATS. Rows of shards that are not closed are not sealed yet.`,
		Example: `  almanac audit seal trail
  almanac audit seal trail -o ndjson > seals.ndjson
  almanac verify trail --seals seals.ndjson`,
		Args: arguments(1, 1),
		RunE: a.does(a.auditSeal),
	}
	outputFlag(seal, asTable, asJSON, asNDJSON)
	return usageGroup(&cobra.Command{Use: "audit", Short: "Print seals over audit trails"}, seal)
}

func (a *app) auditSeal(ctx context.Context, cmd *cobra.Command, args []string) error {
	return whenNATS(ctx, cmd, func(c *session) error {
		t, err := c.reg.Topic(ctx, args[0])
		if err != nil {
			return err
		}
		if !t.Spec().Seals {
			return usageError{fmt.Errorf("topic %q is of kind %s, whose shards are not sealed", t.Name, t.Kind)}
		}
		all, err := c.reg.Seals(ctx, t.Name)
		if err != nil {
			return err
		}
		return printRows(a, cmd, all, func() table.Writer {
			out := newTable("number", "shard", "rows", "sealed", "why", "replaces", "hash")
			numbers(out, "number", "rows", "replaces")
			for i := range all {
				s := &all[i]
				replaces := ""
				if s.Replaces > 0 {
					replaces = fmt.Sprint(s.Replaces)
				}
				out.AppendRow(table.Row{s.Number, s.Ref(), s.Rows, s.At.Format(time.RFC3339), s.Why, replaces, s.Hash})
			}
			return out
		})
	})
}

// checkSeals compares the rows with seals that were kept in a file, those of one topic or of
// all. It returns a report for each topic.
func (a *app) checkSeals(ctx context.Context, c *session, file, topic string) ([]seals.Report, error) {
	in := a.input(ctx)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = io.Reader(f)
	}
	kept, err := seals.Parse(in)
	if err != nil {
		return nil, err
	}
	var chosen []schemas.Seal
	for _, s := range kept {
		if topic == "" || s.Topic == topic {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, usageError{fmt.Errorf("%s has no seals to compare with", file)}
	}
	return seals.Check(ctx, c.reg, c.db, chosen)
}

// tellSeals prints what a check of seals found. It is false when something does not hold.
func (a *app) tellSeals(reports []seals.Report) bool {
	good := true
	for i := range reports {
		r := &reports[i]
		for _, text := range r.Replaced {
			a.note("  %s", text)
		}
		for _, text := range r.Problems {
			a.note("  %s", text)
		}
		if len(r.Problems) > 0 {
			good = false
			a.note("seals of topic %s: %s", r.Topic, counted(len(r.Problems), "problem"))
			continue
		}
		a.note("seals of topic %s: %s kept, %s of %s are as sealed, %s since", r.Topic, counted(r.Kept, "seal"), counted(r.Rows, "row"), counted(r.Shards, "shard"), counted(r.Since, "seal"))
	}
	return good
}
