package tables

import (
	"context"
	"crypto/sha256"
	stdsql "database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// viewMark begins the comment of each view.
const viewMark = "made by almanac, "

// EnsureViews makes the ready-made views beside the topic's table, and recreates
// them where the topic got fields since. They are for people: that one cannot be
// made is not a reason to store nothing.
func (db *DB) EnsureViews(ctx context.Context, t *schemas.Topic) error {
	for _, v := range sql.Views(t, db.Database) {
		if err := db.ensureView(ctx, v); err != nil {
			return fmt.Errorf("view %s: %w", v.Name, Refusal(err))
		}
	}
	return nil
}

// ensureView replaces a view of another definition. Its comment tells which it
// has: ClickHouse keeps a definition in words of its own.
func (db *DB) ensureView(ctx context.Context, v sql.View) error {
	sum := sha256.Sum256([]byte(v.Select))
	mark := viewMark + hex.EncodeToString(sum[:8])
	var engine, comment string
	err := db.conn.QueryRow(ctx, "SELECT engine, comment FROM system.tables WHERE database = $1 AND name = $2", db.Database, v.Name).Scan(&engine, &comment)
	switch {
	case errors.Is(err, stdsql.ErrNoRows):
	case err != nil:
		return err
	case engine != "View":
		return fmt.Errorf("%w: a table of engine %s has its name; rename that", ErrNameTaken, engine)
	case comment == mark:
		return nil
	}
	return db.conn.Exec(ctx, "CREATE OR REPLACE VIEW "+sql.QuotedTable(db.Database, v.Name)+" AS "+v.Select+" COMMENT '"+mark+"'")
}
