package main

import (
	"context"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) shardsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shards [TOPIC]",
		Short: "List the shards: where events go and went",
		Long: `List the shards of a topic, or of all: status, the rows that they have and those that
erasures took, time range, and how many of their frames are stored in ClickHouse (stored = frames: all),
on which volume, and what they take on its disk.

"erased" counts the rows that erasures took; "rows" is without them. "rotated" is when the lane went on in
another shard of the month: empty for the one that it writes to. "why" is what it left the shard for: rows,
bytes or span (the shard was full), retention, or forked (NATS was restored); then what retention did.`,
		Args: arguments(0, 1),
		RunE: a.does(a.shards),
	}
	flagsOf(cmd, &operations.Shards, "month")
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

func (a *app) shards(ctx context.Context, cmd *cobra.Command, args []string) error {
	return whenOpen(ctx, cmd, func(_ *session, r *query.Reader) error {
		f := reading{flags: cmd}
		rows, err := r.Shards(ctx, optional(args), f.flag("month"))
		if err != nil {
			return err
		}
		return printRows(a, cmd, rows, func() table.Writer {
			t := newTable("shard", "lane", "status", "rows", "erased", "size", "frames", "stored", "on", "disk", "from", "to", "rotated", "why")
			numbers(t, "lane", "rows", "erased", "size", "frames", "stored", "disk")
			for _, s := range rows {
				from, to := s.MinTs.Format(time.RFC3339), s.MaxTs.Format(time.RFC3339)
				if s.MinTs.After(s.MaxTs) { // made, and nothing came yet
					from, to = "", ""
				}
				rotated := ""
				if !s.RotatedAt.IsZero() {
					rotated = s.RotatedAt.Format(time.RFC3339)
				}
				why := s.Reason
				if !s.AnonymisedAt.IsZero() {
					why += "; anonymised " + s.AnonymisedAt.Format(time.DateOnly)
				}
				if !s.DroppedAt.IsZero() {
					why += "; " + s.DropReason + ", dropped " + s.DroppedAt.Format(time.DateOnly)
				}
				t.AppendRow(table.Row{s.Name, s.Lane, s.Status, s.Rows, s.Erased, schemas.FormatBytes(float64(s.Bytes)), s.Frames, s.Stored, on(s.Places), onDisk(s.Places), from, to, rotated, strings.TrimPrefix(why, "; ")})
			}
			return t
		})
	})
}
