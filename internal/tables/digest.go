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
// there are. The rows must not change meanwhile.
func (db *DB) RowsDigest(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, version int) (digest string, rows uint64, err error) {
	fail := func(err error) (string, uint64, error) {
		return "", 0, fmt.Errorf("digest of %s: %w", ref, err)
	}
	q := fmt.Sprintf("SELECT count() FROM %s WHERE month = %d AND shard = %d", sql.QuotedTable(db.Database, t.Name), uint32(ref.Month), uint64(ref.ID))
	if err := db.conn.QueryRow(ctx, q).Scan(&rows); err != nil {
		return fail(Refusal(err))
	}
	body, err := db.Select(ctx, &Select{SQL: sql.RowsDigestSQL(t, db.Database, ref, version), Settings: digestSettings})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = body.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, body); err != nil {
		return fail(err)
	}
	return hex.EncodeToString(h.Sum(nil)), rows, nil
}
