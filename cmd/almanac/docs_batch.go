package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) docsBatch() *cobra.Command {
	cmd := &cobra.Command{
		Use: "batch TOPIC", Short: "Change up to 500 documents, all or none", Args: arguments(1, 1),
		Long: `Carry out the changes that stdin has, one JSON object a line, all or none. A change has
op (create, put, update or remove), id, path, created, if_version, body, and lock and unlock
where it is made under a lock. A document that is there must be under the path that is given.
A batch has up to 500 changes and 8 MiB of bodies, and changes
each document once.

Where one of them cannot be made, nothing is written, each that is refused is named, and
the exit code is that of the first.`,
		Annotations: otherDocument.declared(),
		Example: `  almanac docs batch accounts < transfer.ndjson
  {"op":"update","id":"a-1","if_version":3,"body":{"balance":90}}
  {"op":"update","id":"a-2","if_version":7,"body":{"balance":110}}`,
		RunE: a.withDocs(a.batch),
	}
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

func (a *app) batch(ctx context.Context, cmd *cobra.Command, c *documents.Collection, _ []string) error {
	ops, err := a.batchOps(ctx)
	if err != nil {
		return err
	}
	docs, err := c.Batch(ctx, ops...)
	if refused := (*documents.BatchError)(nil); errors.As(err, &refused) {
		for _, m := range refused.Members[:min(len(refused.Members), maxRefusedLines)] {
			a.note("change %d: %s", m.Index+1, schemas.Text(m.Err))
		}
	}
	if err != nil {
		return err
	}
	return printRows(a, cmd, docs, func() table.Writer { return docTable(docs) })
}

// batchOps reads the changes, up to one more than a batch may have.
func (a *app) batchOps(ctx context.Context) (ops []documents.Op, err error) {
	in := bufio.NewScanner(a.input(ctx))
	in.Buffer(nil, 8*schemas.MaxDocumentBytes)
	for n := 1; in.Scan() && len(ops) <= documents.MaxBatch; n++ {
		text := bytes.TrimSpace(in.Bytes())
		if ctx.Err() != nil { // it may be the beginning of a line
			return nil, errInterrupted
		}
		if len(text) == 0 {
			continue
		}
		var l documents.Change
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			return nil, fmt.Errorf("%w: line %d is not a change: %w", schemas.ErrRequest, n, err)
		}
		op, err := l.Parse()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		ops = append(ops, op)
	}
	return ops, in.Err()
}
