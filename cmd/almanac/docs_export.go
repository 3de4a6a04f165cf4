package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/documents"
)

func (a *app) docsExport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export TOPIC", Short: "Write documents as NDJSON", Args: arguments(1, 1),
		RunE: a.withDocs(func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, _ []string) error {
			s := documents.Selection{Limit: documents.MaxLimit}
			s.Path, _ = cmd.Flags().GetString("path")
			s.All = !cmd.Flags().Changed("path")
			for {
				page, err := c.List(ctx, s)
				if err != nil {
					return err
				}
				if err := printLines(a, page.Documents); err != nil {
					return err
				}
				if s.Cursor = page.Cursor; s.Cursor == "" {
					return nil
				}
			}
		}),
	}
	addFlags(cmd, textFlag("path", "`PATH` whose documents to write; '' for those that do not have a path (default: all documents)"))
	return cmd
}
