package main

import (
	"context"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/operations"
)

func (a *app) docsList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls TOPIC", Short: "List documents, the newest created first", Args: arguments(1, 1),
		Example: `  almanac docs ls customers --path se/uppsala --limit 100
  almanac docs ls customers --path se --below --no-bodies
  almanac docs ls customers --from -1d -o ndjson
  almanac docs ls customers --where "status = 'active' AND version > 1"`,
		RunE: a.pageOf((*documents.Collection).List),
	}
	selectionFlags(cmd, "created")
	return cmd
}

func (a *app) docsChanged() *cobra.Command {
	cmd := &cobra.Command{
		Use: "changed TOPIC", Short: "List the documents that changed, each once, in the order of its last change", Args: arguments(1, 1),
		Long: `List the documents that changed in a range of time, each once, in the order of its
last change in it, with its present version. One that was removed comes without a body.
--where is over the version that the change made. Without bodies each comes as that was.
"almanac tail TOPIC" follows the changes themselves.`,
		RunE: a.pageOf((*documents.Collection).Changed),
	}
	selectionFlags(cmd, "changed")
	return cmd
}

// selectionFlags are those of a list. what is the time by which it goes: created or changed.
func selectionFlags(cmd *cobra.Command, what string) {
	flagsOf(cmd, &operations.Documents, "path", "below", "where", "no_bodies", what+"_from", what+"_to", "limit", "cursor")
	outputFlag(cmd, asTable, asJSON, asNDJSON)
}

// pageOf prints one page. Its flags are read before any server is asked.
func (a *app) pageOf(list func(*documents.Collection, context.Context, documents.Selection) (*documents.Page, error)) func(*cobra.Command, []string) error {
	return a.does(func(_ context.Context, cmd *cobra.Command, args []string) error {
		sel, err := selection(cmd)
		if err != nil {
			return err
		}
		o := format(cmd, a.forEvents())
		return a.withDocs(a.printPage(o, sel, list))(cmd, args)
	})
}

func (a *app) printPage(o string, sel documents.Selection, list func(*documents.Collection, context.Context, documents.Selection) (*documents.Page, error)) docsVerb {
	return func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, _ []string) error {
		page, err := list(c, ctx, sel)
		if err != nil {
			return err
		}
		page.Cursor = nextPage(cmd, page.Cursor)
		err = printPage(a, o, page, page.Documents, func() table.Writer { return docTable(page.Documents) })
		if page.Cursor != "" && o != asJSON {
			a.note("there is more: --cursor %s", page.Cursor)
		}
		return err
	}
}

func selection(cmd *cobra.Command) (s documents.Selection, err error) {
	f := cmd.Flags()
	s.Path, _ = f.GetString("path")
	s.All = !f.Changed("path")
	s.Below, _ = f.GetBool("below")
	s.Where, _ = f.GetString("where")
	s.NoBodies, _ = f.GetBool("no-bodies")
	s.Limit, _ = f.GetInt("limit")
	s.Cursor, _ = f.GetString("cursor")
	r := reading{flags: cmd}
	s.From, s.To = r.time("from"), r.until("to")
	return s, r.err
}

func (a *app) docsHistory() *cobra.Command {
	cmd := &cobra.Command{
		Use: "history TOPIC ID", Short: "List all versions of a document, the oldest first", Args: arguments(2, 2),
		RunE: a.withDocs(func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, args []string) error {
			versions, err := c.History(ctx, args[1])
			if err != nil {
				return err
			}
			return printRows(a, cmd, versions, func() table.Writer {
				t := newTable("version", "op", "changed", "by", "body")
				numbers(t, "version")
				for _, d := range versions {
					t.AppendRow(table.Row{d.Version, d.Op, d.Changed.Format(time.RFC3339Nano), d.By, clipped(string(d.Body))})
				}
				return t
			})
		}),
	}
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}
