package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/almanac-events/almanac/internal/budget"
)

// SQLTable is a table that a statement may read.
type SQLTable struct {
	Name    string      `json:"name"`
	Columns []SQLColumn `json:"columns"`
}

// SQLColumn is one of its columns, with its type as ClickHouse names it.
type SQLColumn struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Comment string `json:"comment,omitempty"`
}

const (
	// maxSchemaColumns is 1,000 topics with 100 columns in some tables.
	maxSchemaColumns = 100_000
	// schemaColumnBytes is what a column takes beside its texts, until it is written.
	schemaColumnBytes = 200
)

const schemaStatement = "SELECT table, name, type, comment FROM system.columns WHERE database = currentDatabase() ORDER BY table, position"

// SQLSchema lists the tables that an account may read, by name; user and password as in SQLRequest.
func (r *Reader) SQLSchema(ctx context.Context, user, password string) ([]SQLTable, error) {
	body, err := r.SQL(ctx, SQLRequest{SQL: schemaStatement, User: user, Password: password, MaxRows: maxSchemaColumns})
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	all, account := []SQLTable{}, budget.Of(ctx)
	for d := json.NewDecoder(body); ; {
		var row struct {
			Table string
			SQLColumn
		}
		switch err := d.Decode(&row); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("query: the columns that SQL has: %w", err)
		}
		if err := account.Take(int64(schemaColumnBytes + 2*(len(row.Table)+len(row.Name)+len(row.Type)+len(row.Comment)))); err != nil {
			return nil, err
		}
		if len(all) == 0 || all[len(all)-1].Name != row.Table {
			all = append(all, SQLTable{Name: row.Table})
		}
		last := &all[len(all)-1]
		last.Columns = append(last.Columns, row.SQLColumn)
	}
}
