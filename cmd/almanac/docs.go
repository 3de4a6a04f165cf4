package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/operations"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) docsCommand() *cobra.Command {
	return usageGroup(&cobra.Command{
		Use:   "docs",
		Short: "Store, load and list documents",
		Long: `Store, load and list JSON documents of a topic of kind document, by id, with
compare-and-set. Every change is an event of the topic, which query, tail, sql and
replay show.`,
		Annotations: otherDocument.declared(),
	}, a.docsPut(), a.docsGet(), a.docsUpdate(), a.docsRemove(), a.docsBatch(), a.docsList(), a.docsChanged(), a.docsHistory(), a.docsLock(), a.docsUnlock(), a.docsLocks(),
		a.docsImport(), a.docsExport(), a.docsStatus())
}

// docsVerb is the code of a verb over one collection.
type docsVerb func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, args []string) error

// withDocs opens the collection that the first argument names.
func (a *app) withDocs(v docsVerb) func(*cobra.Command, []string) error { return a.onDocs(v, false) }

// onDocs is withDocs; told prints where the collection is, for a verb that removes something.
func (a *app) onDocs(v docsVerb, told bool) func(*cobra.Command, []string) error {
	return a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return whenServed(ctx, cmd, func(servers *session) error {
			c, err := documents.Open(ctx, servers.nc, args[0], documents.Config{By: writer(), Archive: archive.New(servers.reg, servers.db)})
			if err != nil {
				return err
			}
			if told {
				a.tellTarget(servers)
			}
			return v(ctx, cmd, c, args)
		})
	})
}

// writer is who writes, as versions keep it.
func writer() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// oneDocument prints a document: JSON unless -o says otherwise.
func (a *app) oneDocument(cmd *cobra.Command, d *documents.Document) error {
	list := []*documents.Document{d}
	return printPage(a, format(cmd, asJSON), d, list, func() table.Writer { return docTable(list) })
}

func docTable(docs []*documents.Document) table.Writer {
	t := newTable("id", "path", "version", "created", "changed", "body")
	numbers(t, "version")
	for _, d := range docs {
		body := string(d.Body)
		if d.Op == schemas.OpRemoved {
			body = "(removed)"
		}
		t.AppendRow(table.Row{d.ID, d.Path, d.Version, d.Created.Format(time.RFC3339), d.Changed.Format(time.RFC3339), clipped(body)})
	}
	return t
}

// clipped is a body as a table shows it.
func clipped(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func (a *app) docsPut() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put TOPIC [ID]",
		Short: "Store a document, which is read from stdin",
		Long: `Store a document, which is read from stdin: a JSON object. Without --if-absent and
--if-version a document that is there is overwritten, and one that is not is created.
Without an ID one is generated. A document keeps the path that it was created under:
with --path, one that is under another is refused.`,
		Annotations: otherDocument.declared(),
		Example: `  echo '{"name":"Ada"}' | almanac docs put customers c-1 --path se/uppsala
  echo '{"name":"Ada L."}' | almanac docs put customers c-1 --if-version 1`,
		Args: arguments(1, 2),
		RunE: a.withDocs(a.put),
	}
	flagsOf(cmd, &operations.PutDocument, "path", "created", "lock", "unlock")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { // before a server is asked
		return createdFlag(cmd, new(time.Time))
	}
	addFlags(cmd,
		switchFlag("if-absent", "refuse where the document exists"),
		tokenFlag("if-version", "`VERSION` that the document must have"),
	)
	outputFlag(cmd, asJSON, asNDJSON, asTable)
	return cmd
}

func (a *app) put(ctx context.Context, cmd *cobra.Command, c *documents.Collection, args []string) error {
	body, err := a.body(ctx, c)
	if err != nil {
		return err
	}
	op := lockOf(cmd, documents.Op{Body: body})
	if err := createdFlag(cmd, &op.Created); err != nil {
		return err
	}
	absent, _ := cmd.Flags().GetBool("if-absent")
	version, _ := cmd.Flags().GetUint64("if-version")
	if len(args) > 1 {
		op.ID = args[1]
	}
	switch {
	case absent && version > 0:
		return usageError{errors.New("give either --if-absent or --if-version")}
	case version > 0 && op.ID == "":
		return usageError{errors.New("--if-version wants an ID")}
	case op.Lock > 0 && op.ID == "":
		return usageError{errors.New("--lock wants an ID")}
	case absent || op.ID == "":
		op.Kind = documents.Create
	case version > 0:
		op.If = documents.IfVersion(version)
	default:
		op.Kind = documents.Put
	}
	d, err := c.Write(ctx, op)
	if err != nil {
		return err
	}
	return a.oneDocument(cmd, d)
}

// lockOf gives a change the lock and the path that the flags name.
func lockOf(cmd *cobra.Command, op documents.Op) documents.Op {
	op.Lock, _ = cmd.Flags().GetUint64("lock")
	op.Unlock, _ = cmd.Flags().GetBool("unlock")
	op.Path, _ = cmd.Flags().GetString("path")
	op.In = cmd.Flags().Changed("path")
	return op
}

// createdFlag reads the time that --created gives.
func createdFlag(cmd *cobra.Command, into *time.Time) (err error) {
	text, _ := cmd.Flags().GetString("created")
	if text == "" {
		return nil
	}
	if *into, err = parseTime(text, timesOf(cmd)); err != nil {
		return usageError{fmt.Errorf("--created: %w", err)}
	}
	return nil
}

// body reads a document from stdin, up to what the topic takes and one byte.
func (a *app) body(ctx context.Context, c *documents.Collection) ([]byte, error) {
	t := c.Topic()
	limit := int64(4 * t.Documents.MaxBytes) // with spaces, which are not kept
	body, err := io.ReadAll(io.LimitReader(a.input(ctx), limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("%w: stdin has more than %d bytes, and a document of topic %q at most %d", schemas.ErrRequest, limit, t.Name, t.Documents.MaxBytes)
	}
	return body, err
}

func (a *app) docsGet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get TOPIC ID", Short: "Load a document", Args: arguments(2, 2), Annotations: exits{exitFailed: "no such document, or failed", exitConflict: "others changed the document each time it was read"}.declared(),
		Example: `  almanac docs get customers c-1 -o json`,
		RunE: a.withDocs(func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, args []string) error {
			load := c.Load
			if path, _ := cmd.Flags().GetString("path"); cmd.Flags().Changed("path") {
				load = func(ctx context.Context, id string) (*documents.Document, error) { return c.LoadIn(ctx, path, id) }
			}
			d, err := load(ctx, args[1])
			if err != nil {
				return err
			}
			return a.oneDocument(cmd, d)
		}),
	}
	flagsOf(cmd, &operations.Document, "path")
	outputFlag(cmd, asJSON, asNDJSON, asTable)
	return cmd
}

func (a *app) docsUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update TOPIC ID", Short: "Replace a document that exists by what stdin has", Args: arguments(2, 2), Annotations: otherDocument.declared(),
		RunE: a.withDocs(func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, args []string) error {
			body, err := a.body(ctx, c)
			if err != nil {
				return err
			}
			version, _ := cmd.Flags().GetUint64("if-version")
			d, err := c.Write(ctx, lockOf(cmd, documents.Op{ID: args[1], If: documents.IfVersion(version), Body: body}))
			if err != nil {
				return err
			}
			return a.oneDocument(cmd, d)
		}),
	}
	flagsOf(cmd, &operations.RemoveDocument, "path", "lock", "unlock")
	addFlags(cmd, tokenFlag("if-version", "`VERSION` that the document must have (default: any)"))
	outputFlag(cmd, asJSON, asNDJSON, asTable)
	return cmd
}

func (a *app) docsRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rm TOPIC ID", Short: "Remove a document; its versions stay in the history", Args: arguments(2, 2), Annotations: otherDocument.declared(),
		RunE: a.onDocs(func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, args []string) error {
			version, _ := cmd.Flags().GetUint64("if-version")
			_, err := c.Write(ctx, lockOf(cmd, documents.Op{Kind: documents.Remove, ID: args[1], If: documents.IfVersion(version)}))
			return err
		}, true),
	}
	flagsOf(cmd, &operations.RemoveDocument, "path", "lock", "unlock")
	addFlags(cmd, tokenFlag("if-version", "`VERSION` that the document must have (default: any)"))
	return cmd
}

func (a *app) docsStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status TOPIC", Short: "Count a topic's documents: hot, cold, and not archived", Args: arguments(1, 1),
		RunE: a.withDocs(func(ctx context.Context, cmd *cobra.Command, c *documents.Collection, _ []string) error {
			s, err := c.Status(ctx)
			if err != nil {
				return err
			}
			if printed, err := printRecord(a, format(cmd, asTable), s); printed || err != nil {
				return err
			}
			t := newTable("hot", "cold", "removed", "unarchived", "oldest unarchived", "bytes of DOCS")
			numbers(t, "hot", "cold", "removed", "unarchived")
			t.AppendRow(table.Row{s.Hot, s.Cold, s.Removed, s.Unarchived, fmt.Sprintf("%.1f s", s.OldestUnarchived), schemas.FormatBytes(float64(s.Bytes))})
			return a.printTable(t)
		}),
	}
	outputFlag(cmd, asTable, asJSON)
	return cmd
}
