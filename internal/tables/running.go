package tables

import "context"

// Running is how far ClickHouse is with a statement.
type Running struct {
	Read
	// Total is how many rows it expects to read, as far as it knows by now; 0: it does not know.
	Total uint64
	// Memory is what it holds.
	Memory int64
}

// Running returns how far ClickHouse is with the statement of a query_id; nil: it runs none of that id.
func (db *DB) Running(ctx context.Context, id string) (found *Running, err error) {
	return found, db.each(ctx, "statement "+id, func(scan scan) error {
		found = &Running{}
		return scan(&found.Rows, &found.Bytes, &found.Total, &found.Memory)
	}, "SELECT read_rows, read_bytes, total_rows_approx, memory_usage FROM system.processes WHERE query_id = $1 LIMIT 1", id)
}
