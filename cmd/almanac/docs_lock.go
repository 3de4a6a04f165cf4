package main

import (
	"context"
	"errors"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/operations"
)

func (a *app) docsLock() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lock TOPIC ID", Short: "Lock an id, so that one worker at a time deals with it", Args: arguments(2, 2),
		Long: `Lock an id for a time, from one second to an hour. While the lock is held another "docs
lock" of the id exits with 4 and says who holds it. The answer has the lock's token and
when it ends, by the clock of NATS. --token renews the lock that it names.

A lock does not stop those who write without one. A write that names a token (--lock) is
refused where that lock was lost: also one that a worker sends late, after a pause in
which its lock ended and another worker took over. Such a write renews the lock, or
releases it (--unlock).`,
		Annotations: exits{exitConflict: "another holds the lock"}.declared(),
		Example: `  almanac docs lock customers c-1 --for 30s
  echo '{"name":"Ada"}' | almanac docs put customers c-1 --lock 1234 --unlock`,
		RunE: a.withDocs(func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, args []string) error {
			by, _ := cmd.Flags().GetString("by")
			d, _ := cmd.Flags().GetDuration("for")
			token, _ := cmd.Flags().GetUint64("token")
			if by == "" {
				by = writer()
			}
			var l *documents.Lock
			var err error
			if token != 0 {
				l, err = c.Renew(ctx, args[1], token, d)
			} else {
				l, err = c.Lock(ctx, args[1], by, d)
			}
			if err != nil {
				return err
			}
			return a.printJSON(l)
		}),
	}
	addFlags(cmd,
		orElse(lengthFlag("for", "how long the lock is held, 1s to 1h"), 30*time.Second),
		textFlag("by", "`NAME` of the holder (default: the user)"),
		tokenFlag("token", "`TOKEN` of a lock that is held, to renew it"),
	)
	return cmd
}

func (a *app) docsUnlock() *cobra.Command {
	cmd := &cobra.Command{
		Use: "unlock TOPIC ID", Short: "Release a lock", Args: arguments(2, 2), Annotations: exits{exitConflict: "the lock is another's"}.declared(),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, _ := cmd.Flags().GetUint64("token")
			force, _ := cmd.Flags().GetBool("force")
			if force == (token != documents.AnyLock) {
				return usageError{errors.New("give either --token, or --force to release the lock of another")}
			}
			return a.withDocs(func(ctx context.Context, _ *cobra.Command, c *documents.Collection, args []string) error {
				return c.Unlock(ctx, args[1], token)
			})(cmd, args)
		},
	}
	flagsOf(cmd, &operations.UnlockDocument, "token", "force")
	return cmd
}

func (a *app) docsLocks() *cobra.Command {
	cmd := &cobra.Command{
		Use: "locks TOPIC", Short: "List the locks that are held, with their holders", Args: arguments(1, 1),
		RunE: a.withDocs(func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, _ []string) error {
			locks, err := c.Locks(ctx)
			if err != nil {
				return err
			}
			return printRows(a, cmd, locks, func() table.Writer {
				t := newTable("id", "by", "until", "token")
				for _, l := range locks {
					t.AppendRow(table.Row{l.ID, l.By, l.Until.Format(time.RFC3339), l.Token})
				}
				return t
			})
		}),
	}
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}
