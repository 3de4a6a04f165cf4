package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes the manual from the commands themselves: packages and `make install` call it.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the man pages into a directory",
		Args:  arguments(1, 1),
		RunE: a.does(func(_ context.Context, cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // a manual is for everybody
				return err
			}
			// A page says no date: the same version writes the same bytes.
			at := time.Unix(0, 0).UTC()
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Title: "ALMANAC", Section: "1", Source: "Almanac " + version, Date: &at}, args[0])
		}),
	}
}
