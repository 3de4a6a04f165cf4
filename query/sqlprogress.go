package query

import (
	"context"
)

// SQLProgress is what ClickHouse has read of a statement that runs.
type SQLProgress struct {
	SQLRead
	// TotalRows are those that it expects to read, by what it knows so far: it may grow. 0: not known.
	TotalRows uint64 `json:"total_rows"`
	// Memory is what the statement holds, in bytes.
	Memory int64 `json:"memory_bytes"`
}

// SQLProgress says how far ClickHouse is with a statement, by the id that SQLRequest.Asked heard; nil: it does not run it, not
// yet or no longer. The reader's own account asks: that of statements sees none of the server's tables.
func (r *Reader) SQLProgress(ctx context.Context, id string) (*SQLProgress, error) {
	p, err := r.db.Running(ctx, id)
	if p == nil || err != nil {
		return nil, err
	}
	return &SQLProgress{SQLRead{p.Rows, p.Bytes}, p.Total, p.Memory}, nil
}
