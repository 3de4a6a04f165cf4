package tables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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

// Has reports whether the account has all of some rights, as GRANT takes them: SELECT ON a, INSERT ON b.
func (db *DB) Has(ctx context.Context, rights string) (bool, error) {
	var n uint8
	if err := Refusal(db.conn.QueryRow(ctx, checkGrant+rights).Scan(&n)); err != nil {
		return false, fmt.Errorf("the rights %s: %w", rights, err)
	}
	return n == 1, nil
}

// HasAs is Has of another account.
func (db *DB) HasAs(ctx context.Context, user, password, rights string) (has bool, err error) {
	body, err := db.Select(ctx, &Select{SQL: checkGrant + rights, User: user, Password: password, changes: true}) // who may only read has no such right
	if err != nil {
		return false, fmt.Errorf("the rights %s of %s: %w", rights, user, err)
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(body, 16))
	return strings.TrimSpace(string(text)) == "1", err
}

const checkGrant = "CHECK GRANT "
