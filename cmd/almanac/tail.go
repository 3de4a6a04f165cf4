package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/query"
)

func (a *app) tailCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tail TOPIC",
		Short: "Follow events as they come",
		Long: `Follow events as they come, until Ctrl-C. The end says the position of the last
event; --from-pos goes on behind it, with nothing left out and nothing twice.`,
		Example: `  almanac tail app
  almanac tail auth --where "type = 'login'" -o ndjson
  almanac tail auth --from-pos 4711.12`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(a.tail),
	}
	f := cmd.Flags()
	f.String("where", "", "`FILTER` over columns, promoted fields and attributes")
	f.String("from-pos", "", "`POSITION` to go on behind (default: from now on)")
	f.Int("limit", 0, "end after so many events (0: never)")
	f.Bool("with-pos", false, `add the position as "_pos" (ndjson)`)
	outputFlag(cmd, asTable, asNDJSON)
	return cmd
}

func (a *app) tail(ctx context.Context, cmd *cobra.Command, args []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	o, err := format(cmd, a.forEvents(), asTable, asNDJSON)
	if err != nil {
		return err
	}
	f := reading{flags: cmd}
	limit, _ := cmd.Flags().GetInt("limit")
	withPos, _ := cmd.Flags().GetBool("with-pos")
	c, r, err := open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()

	out, last, n := bufio.NewWriter(a.stdout), "", 0
	enough, stop := context.WithCancel(ctx)
	defer stop()
	err = r.Tail(enough, query.TailRequest{Topic: args[0], Where: f.flag("where"), From: f.flag("from-pos")},
		func(pos string, event json.RawMessage) error {
			switch {
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
}

// eventLine is one event on one line.
func eventLine(e event) string {
	var parts []string
	for _, p := range []string{e.ts, e.level, e.service, e.kind, e.user, e.message, e.more} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "  ")
}
