package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) deadCommand() *cobra.Command {
	ls := &cobra.Command{
		Use:   "ls [TOPIC]",
		Short: "List dead letters, the oldest first",
		Args:  arguments(0, 1),
		RunE:  a.does(a.deadList),
	}
	limit := flagOf(&operations.DeadLetters, "limit")
	limit.Help, limit.Most = "how many", 0 // a terminal may have them all
	addFlags(ls, limit)
	flagsOf(ls, &operations.DeadLetters, "reason")
	outputFlag(ls, asTable, asJSON, asNDJSON)
	show := &cobra.Command{
		Use:   "show LETTER",
		Short: "Show one dead letter, with why it could not be stored",
		Long: `Show one dead letter, by its number and time as dead ls prints it. A number alone
is what has it now: NATS gives numbers again where SHARDS loses its end.`,
		Example: "  almanac dead show 4711@2026-11-20T12:00:00.123456789Z",
		Args:    arguments(1, 1),
		RunE:    a.does(a.deadShow),
	}
	addFlags(show, switchFlag("raw", "print its bytes and nothing else"))
	outputFlag(show, asTable, asJSON, asNDJSON)
	return usageGroup(&cobra.Command{
		Use:   "dead",
		Short: "Look at what could not be stored, send it again, or drop it",
		Long:  "Look at dead letters: messages and events that could not be stored, kept whole with the reason.",
	}, ls, show, a.deadRetryCommand(), a.deadDropCommand())
}

func (a *app) deadList(ctx context.Context, cmd *cobra.Command, args []string) error {
	limit, _ := cmd.Flags().GetInt("limit")
	if limit < 1 {
		return usageError{fmt.Errorf("--limit: %d is not 1 or more", limit)}
	}
	reason, _ := cmd.Flags().GetString("reason")
	return whenOpen(ctx, cmd, func(c *session, r *query.Reader) error {
		letters, err := r.DeadOf(ctx, optional(args), reason, limit)
		if err != nil {
			return err
		}
		if len(letters) == 0 && len(args) == 1 {
			if _, err := c.reg.Topic(ctx, args[0]); err != nil {
				return err // dead letters of a topic that is not declared are listed, their absence is a slip
			}
		}
		if len(letters) == limit {
			a.note("the first %d; --limit shows more", limit)
		}
		return printRows(a, cmd, letters, func() table.Writer {
			t := newTable("letter", "topic", "reason", "events", "bytes", "from", "detail")
			numbers(t, "events", "bytes")
			for _, d := range letters {
				t.AppendRow(table.Row{d.ID, printable(d.Topic), printable(d.Reason), d.Events, d.Bytes, printable(source(&d)), printable(d.Detail)})
			}
			return t
		})
	})
}

// source is where a dead letter was published.
func source(d *query.DeadLetter) string {
	s := d.Subject
	if d.SourceSeq > 0 {
		s += fmt.Sprintf(" %d", d.SourceSeq)
	}
	if d.Lines != "" {
		s += " line " + d.Lines
	}
	return s
}

func (a *app) deadShow(ctx context.Context, cmd *cobra.Command, args []string) error {
	name, err := schemas.ParseName(args[0])
	if err != nil {
		return usageError{fmt.Errorf("%q: %w; `almanac dead ls` lists dead letters", args[0], err)}
	}
	o := format(cmd, asTable)
	return whenOpen(ctx, cmd, func(_ *session, r *query.Reader) error {
		d, err := r.DeadLetter(ctx, name)
		if err != nil {
			return err
		}
		raw, _ := cmd.Flags().GetBool("raw")
		switch {
		case raw:
			_, err = a.stdout.Write(d.Payload)
		case o == asJSON:
			err = a.printJSON(d)
		case o == asNDJSON:
			err = printLines(a, []*query.DeadLetter{d})
		default:
			_, err = fmt.Fprintf(a.stdout, "letter   %s\ntopic    %s\nreason   %s\ndetail   %s\nfrom     %s\nevents   %d\nbytes    %d\n\n%s\n",
				d.ID, printable(d.Topic), printable(d.Reason), printable(d.Detail), printable(source(d)), d.Events, len(d.Payload), preview(d.Payload))
		}
		return err
	})
}

// maxPreview is a screen of text, or of Go's notation where it is none.
const maxPreview = 2000

func preview(b []byte) string {
	more := ""
	if len(b) > maxPreview {
		more = fmt.Sprintf("\n… %d bytes more (--raw prints all)", len(b)-maxPreview)
		b = b[:maxPreview]
	}
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c >= 0x7f {
			return strconv.QuoteToASCII(string(b)) + more
		}
	}
	return string(b) + more
}
