package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
)

func (a *app) tailCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tail TOPIC",
		Short: "Follow events as they come",
		Long: `Follow events as they come, until Ctrl-C: from now on, from a time (--from) or
from behind a position. The end says the position of the last event; --from-pos
goes on after it, with nothing left out and nothing twice. A position whose message
NATS lost is refused. Servers that are away are waited for.

Events come in the order in which they were routed, not by their own time. Those
of one producer, lane key and month come in the order in which it logged them,
except that a frame which had to be sent again comes after up to 63 later ones.
query --order asc is in the order of time and id.`,
		Example: `  almanac tail app
  almanac tail app --from -15m
  almanac tail auth --where "type = 'login'" -o ndjson
  almanac tail app --fields ts,user_id,attributes.ip
  almanac tail auth --from-pos 4711.12@2026-11-20T12:00:00.123456789Z`,
		Args: arguments(1, 1),
		RunE: a.does(a.tail),
	}
	flagsOf(cmd, &operations.Tail, "where", "fields", "since", "from_pos")
	addFlags(cmd,
		textFlag("cursor", "the same as --from-pos"),
		numberFlag("limit", "end after so many events (0: never)"),
		switchFlag("with-pos", `add the position as "_pos" (ndjson)`),
	)
	cmd.MarkFlagsMutuallyExclusive("from", "from-pos", "cursor")
	outputFlag(cmd, asTable, asNDJSON)
	return cmd
}

func (a *app) tail(ctx context.Context, cmd *cobra.Command, args []string) error {
	o := format(cmd, a.forEvents())
	f := reading{flags: cmd}
	req := query.TailRequest{Topic: args[0], Where: f.flag("where"), Fields: query.SplitNames(f.flag("fields")), From: cmp.Or(f.flag("from-pos"), f.flag("cursor")), Since: f.time("from"), Note: func(text string) { a.note("note: %s", text) }}
	if f.err != nil {
		return f.err
	}
	limit, _ := cmd.Flags().GetInt("limit")
	withPos, _ := cmd.Flags().GetBool("with-pos")
	return whenOpen(ctx, cmd, func(_ *session, r *query.Reader) error {
		out, last, n := bufio.NewWriter(a.stdout), "", 0
		enough, stop := context.WithCancel(ctx)
		defer stop()
		err := r.Tail(enough, req,
			func(pos string, event json.RawMessage) error {
				switch {
				case o == asTable && len(req.Fields) > 0:
					_, _ = fmt.Fprintln(out, oneLine(fieldCells(req.Fields, event)...))
				case o == asTable:
					_, _ = fmt.Fprintln(out, eventLine(readEvent(event)))
				case withPos:
					_, _ = fmt.Fprintf(out, `{"_pos":%q,%s`+"\n", pos, strings.TrimPrefix(string(event), "{"))
				default:
					_, _ = fmt.Fprintf(out, "%s\n", event)
				}
				last = pos
				if n++; n == limit {
					stop()
				}
				// Each event is shown at once: who follows has nothing else to wait for.
				if err := out.Flush(); err != nil || n == limit {
					return cmp.Or(err, context.Canceled)
				}
				return nil
			})
		if last != "" {
			a.note("go on behind this with --from-pos %s", last)
		}
		switch {
		case limit > 0 && n == limit:
			return nil
		case ctx.Err() != nil:
			return errInterrupted
		}
		return err
	})
}

// eventLine is one event on one line.
func eventLine(e event) string {
	return oneLine(e.ts, e.level, e.service, e.kind, e.user, e.message, e.more)
}

// oneLine is what there is, with two spaces between.
func oneLine(cells ...string) string {
	return strings.Join(slices.DeleteFunc(cells, func(c string) bool { return c == "" }), "  ")
}
