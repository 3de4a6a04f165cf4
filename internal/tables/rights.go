package tables

import (
	"context"
	"fmt"
)

// CurrentUser is the account of the connection.
func (db *DB) CurrentUser(ctx context.Context) (name string, err error) {
	if err = Refusal(db.conn.QueryRow(ctx, "SELECT currentUser()").Scan(&name)); err != nil {
		return "", fmt.Errorf("the account at ClickHouse: %w", err)
	}
	return name, nil
}

// Accepts asks whether the server answers another account: ErrAccount where it refuses that.
func (db *DB) Accepts(ctx context.Context, user, password string) error {
	body, err := db.Select(ctx, &Select{SQL: "SELECT 1", User: user, Password: password})
	if err != nil {
		return err
	}
	return body.Close()
}

// Has reports whether the account has a right on tables, both as GRANT takes them.
func (db *DB) Has(ctx context.Context, right, on string) (bool, error) {
	var n uint8
	if err := Refusal(db.conn.QueryRow(ctx, "CHECK GRANT "+right+" ON "+on).Scan(&n)); err != nil {
		return false, fmt.Errorf("the right %s on %s: %w", right, on, err)
	}
	return n == 1, nil
}
