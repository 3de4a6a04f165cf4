package tables

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// The third copy of the ledger is a table beside those of the topics. So a ClickHouse that was
// restored from an older copy has the ledger of that time: it tells which erasures its rows are
// without, and remembers those that the streams forgot when they were restored.

// keptStaleness is how old an answer of KeptLedger may be.
const keptStaleness = time.Second

// keptCache is the last answer of KeptLedger.
type keptCache struct {
	mu   sync.Mutex
	kept map[string]schemas.LedgerCopy
	read time.Time // when the reading began
}

// HasLedger reports whether the table of the ledger is there.
func (db *DB) HasLedger(ctx context.Context) (bool, error) {
	var n uint64
	err := db.conn.QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = $1 AND name = $2", db.Database, schemas.TableLedger).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("table %s: %w", schemas.TableLedger, Refusal(err))
	}
	return n > 0, nil
}

// EnsureLedger makes the table where it is missing.
func (db *DB) EnsureLedger(ctx context.Context) error {
	for _, ddl := range []string{
		"CREATE DATABASE IF NOT EXISTS " + sql.QuoteName(db.Database) + " ENGINE = Atomic",
		sql.CreateLedger(db.Database),
	} {
		if err := db.conn.Exec(ctx, ddl); err != nil {
			return fmt.Errorf("table %s: %w", schemas.TableLedger, Refusal(err))
		}
	}
	return nil
}

// KeptLedger returns the copy of the ledger, which may be a second old; of an entry that was
// written several times the last. It is not known while the server is away.
func (db *DB) KeptLedger(ctx context.Context) (kept map[string]schemas.LedgerCopy, known bool, err error) {
	c := &db.kept
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.kept != nil && now.Sub(c.read) <= keptStaleness {
		return c.kept, true, nil
	}
	kept, err = db.ReadLedger(ctx)
	switch {
	case Classify(err) == Unreachable:
		c.kept = nil
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	c.kept, c.read = kept, now
	return kept, true, nil
}

// ReadLedger reads what KeptLedger returns, now.
func (db *DB) ReadLedger(ctx context.Context) (map[string]schemas.LedgerCopy, error) {
	out := map[string]schemas.LedgerCopy{}
	rows, err := db.conn.Query(ctx, "SELECT key, max(count), argMax(value, (count, at)), argMax(applied, (count, at)) FROM "+
		sql.QuotedTable(db.Database, schemas.TableLedger)+" GROUP BY key")
	if err == nil {
		defer func() { _ = rows.Close() }()
		for err == nil && rows.Next() {
			var k schemas.LedgerCopy
			var value string
			if err = rows.Scan(&k.Key, &k.Count, &value, &k.Applied); err == nil {
				k.Value = []byte(value)
				out[k.Key] = k
			}
		}
		if err == nil {
			err = rows.Err()
		}
	}
	if err = Refusal(err); errors.Is(err, ErrNoTable) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", schemas.TableLedger, err)
	}
	return out, nil
}

// FreshLedger is the copy of the ledger, read at each question, for a part that may not go by what was there a second ago. While
// the server is away its answer is an error.
type FreshLedger struct{ *DB }

// KeptLedger returns what ReadLedger does.
func (f FreshLedger) KeptLedger(ctx context.Context) (kept map[string]schemas.LedgerCopy, known bool, err error) {
	kept, err = f.ReadLedger(ctx)
	return kept, true, err
}

// SaveLedger keeps copies of entries, and returns once they are on disk. What they say is not
// in the statement: a query log has nothing of it.
func (db *DB) SaveLedger(ctx context.Context, entries ...schemas.LedgerCopy) error {
	if len(entries) == 0 {
		return nil
	}
	err := db.saveLedger(ctx, entries)
	if errors.Is(err, ErrNoTable) {
		if err = db.EnsureLedger(ctx); err == nil {
			err = db.saveLedger(ctx, entries)
		}
	}
	db.kept.mu.Lock()
	db.kept.kept = nil
	db.kept.mu.Unlock()
	return err
}

func (db *DB) saveLedger(ctx context.Context, entries []schemas.LedgerCopy) error {
	// An erasure that is marked as applied again brings a row that was there: not a repetition.
	batch, err := db.conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0, "deduplicate_insert": "disable"})),
		"INSERT INTO "+sql.QuotedTable(db.Database, schemas.TableLedger)+" (key, count, value, applied)")
	if err != nil {
		return fmt.Errorf("table %s: %w", schemas.TableLedger, Refusal(err))
	}
	for _, k := range entries {
		if err = batch.Append(k.Key, k.Count, string(k.Value), k.Applied); err != nil {
			break
		}
	}
	if err == nil {
		err = batch.Send()
	} else {
		_ = batch.Abort()
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", schemas.TableLedger, Refusal(err))
	}
	return nil
}

// ClearLedger removes what an entry was before it was written so often: whom it named is to be
// known no more.
func (db *DB) ClearLedger(ctx context.Context, key string, count uint64) error {
	err := db.conn.Exec(ctx, "ALTER TABLE "+sql.QuotedTable(db.Database, schemas.TableLedger)+" DELETE WHERE key = $1 AND count < $2 SETTINGS mutations_sync = 1", key, count)
	if err = Refusal(err); err != nil && !errors.Is(err, ErrNoTable) {
		return fmt.Errorf("table %s: %w", schemas.TableLedger, err)
	}
	return nil
}
