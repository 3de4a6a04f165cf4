package tables

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// digestSettings bound the read of a shard's rows, and let it show when it breaks off.
var digestSettings = map[string]string{
	"max_execution_time":                    "1800",
	"max_threads":                           "2",
	"max_bytes_before_external_sort":        "500000000",
	"optimize_read_in_order":                "1",
	"http_write_exception_in_output_format": "0",
}

// RowsDigest is the digest over a shard's rows (schemas.Topic.RowsDigestSQL), and how many
// there are. Where their number changes meanwhile they are read again. After digestTries it is ErrHeadMoved.
func (db *DB) RowsDigest(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, version int) (digest string, rows uint64, err error) {
	fail := func(err error) (string, uint64, error) {
		return "", 0, fmt.Errorf("digest of %s: %w", ref, err)
	}
	q := fmt.Sprintf("SELECT count() FROM %s WHERE month = %d AND shard = %d", sql.QuotedTable(db.Database, t.Name), uint32(ref.Month), uint64(ref.ID))
	rows, err = steady(func() (n uint64, err error) {
		err = db.conn.QueryRow(ctx, q).Scan(&n)
		return n, Refusal(err)
	}, func() error {
		digest, err = db.digest(ctx, t, ref, version)
		return err
	})
	if err != nil {
		return fail(err)
	}
	return digest, rows, nil
}

// digestTries bounds how often rows are read whose number changes: an erasure is over after one, and a table that is emptied too.
const digestTries = 3

// steady reads rows until there are as many afterwards as before, and returns how many.
func steady(count func() (uint64, error), read func() error) (uint64, error) {
	before, err := count()
	if err != nil {
		return 0, err
	}
	for range digestTries {
		if err := read(); err != nil {
			return 0, err
		}
		after, err := count()
		if err != nil || after == before {
			return after, err
		}
		before = after
	}
	return 0, fmt.Errorf("%w: the number of its rows changed %d times while they were read; they are %d now", ErrHeadMoved, digestTries, before)
}

// digest is RowsDigest of what the table has at one moment.
func (db *DB) digest(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, version int) (string, error) {
	body, err := db.Select(ctx, &Select{SQL: sql.RowsDigestSQL(t, db.Database, ref, version), Settings: digestSettings})
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, body); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
