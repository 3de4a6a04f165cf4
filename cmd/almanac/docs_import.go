package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) docsImport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "import TOPIC", Short: "Create the documents that stdin has as NDJSON", Args: arguments(1, 1),
		Long: `Create the documents that stdin has, one JSON object a line. --id names the key that
holds the id, as a dotted path; its value is a text or a whole number. A line whose
document exists is left alone and counted, so that an import may be run again: but for
documents whose ids are generated, which are stored each time.

What docs export wrote is recognised: id, path, created and body are taken as they are,
and versions begin at 1. --exported refuses other lines, and --exported=false stores
exported lines as bodies.`,
		Annotations: linesRefused.declared(),
		Example: `  almanac docs import quakes --id id < quakes.ndjson
  almanac docs export customers | almanac docs import copies --exported`,
		RunE: a.withDocs(a.importDocs),
	}
	addFlags(cmd,
		textFlag("id", "dotted `KEY` of the id (default: ids are generated)"),
		textFlag("path", "`PATH` of all of them"),
		switchFlag("exported", "the lines are what docs export wrote (default: as each is recognised)"),
	)
	return cmd
}

func (a *app) importDocs(ctx context.Context, cmd *cobra.Command, c *documents.Collection, _ []string) error {
	key, _ := cmd.Flags().GetString("id")
	path, _ := cmd.Flags().GetString("path")
	exported, _ := cmd.Flags().GetBool("exported")
	told := cmd.Flags().Changed("exported")
	var recognised sync.Once
	var generated atomic.Int64
	err := a.importLines(ctx, cmd, "document", 8*schemas.MaxDocumentBytes, func(ctx context.Context, line []byte) (lineFate, error) {
		var n documents.Draft
		var err error
		if is := isExported(line); exported || is && !told {
			if n, err = exportedDocument(line, path, cmd.Flags().Changed("path")); !exported {
				recognised.Do(func() {
					a.note("the lines are what docs export wrote: their ids, paths, times of creation and bodies are taken; --exported=false stores each line as a body")
				})
			}
		} else {
			n, err = newDocument(line, key, path)
		}
		if err == nil {
			_, err = c.Create(ctx, n)
		}
		switch {
		case err == nil:
			if n.ID == "" {
				generated.Add(1)
			}
			return lineCreated, nil
		case errors.Is(err, documents.ErrExists):
			return lineExists, nil
		case errors.Is(err, schemas.ErrRequest):
			return lineRefused, err
		}
		return lineFailed, err
	})
	if made := generated.Load(); made > 0 {
		a.note("%s got generated ids, so that another run stores them again; --id names the key that holds an id", plural(made, "document"))
	}
	return err
}

// isExported reports whether a line is a document as docs export writes it: no other keys, and all
// of its own.
func isExported(line []byte) bool {
	var e struct {
		ID      *string         `json:"id"`
		Path    *string         `json:"path"`
		Version *uint64         `json:"version"`
		Created *time.Time      `json:"created"`
		Changed *time.Time      `json:"changed"`
		By      string          `json:"by"`
		Body    json.RawMessage `json:"body"` // null where retention cleared it
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(&e) == nil && e.ID != nil && e.Path != nil && e.Version != nil && e.Created != nil && e.Changed != nil && e.Body != nil
}

// exportedDocument reads a line of docs export. instead: path replaces the one that it had.
func exportedDocument(line []byte, path string, instead bool) (documents.Draft, error) {
	var d documents.Document
	if err := json.Unmarshal(line, &d); err != nil || d.ID == "" || len(d.Body) == 0 {
		return documents.Draft{}, fmt.Errorf("%w: it is not a line of docs export", schemas.ErrRequest)
	}
	if instead {
		d.Path = path
	}
	return documents.Draft{ID: d.ID, Path: d.Path, Body: d.Body, Created: d.Created}, nil
}

// newDocument reads a line that is a body.
func newDocument(text []byte, key, path string) (documents.Draft, error) {
	n := documents.Draft{Path: path, Body: text}
	if key == "" {
		return n, nil
	}
	at := json.RawMessage(text)
	for _, name := range strings.Split(key, ".") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(at, &object); err != nil || object[name] == nil {
			return n, fmt.Errorf("%w: it has no key %q for the id", schemas.ErrRequest, key)
		}
		at = object[name]
	}
	var id any
	d := json.NewDecoder(bytes.NewReader(at))
	d.UseNumber()
	_ = d.Decode(&id) // it was decoded before
	switch id := id.(type) {
	case string:
		n.ID = id
	case json.Number:
		n.ID = id.String()
	default:
		return n, fmt.Errorf("%w: its %q is neither a text nor a number", schemas.ErrRequest, key)
	}
	return n, nil
}
