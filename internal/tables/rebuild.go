package tables

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// frozenConstraint is the name of the constraint that refuses every insert.
const frozenConstraint = "almanac_frozen"

// TableState is what there is under a name.
type TableState struct {
	Exists bool
	// Frozen: a constraint refuses every insert.
	Frozen bool
}

// TableState looks a table up.
func (db *DB) TableState(ctx context.Context, name string) (s TableState, err error) {
	err = db.each(ctx, "table "+name, func(scan scan) error {
		var ddl string
		err := scan(&ddl)
		s = TableState{Exists: true, Frozen: strings.Contains(ddl, "CONSTRAINT "+frozenConstraint+" ")}
		return err
	}, "SELECT create_table_query FROM system.tables WHERE database = $1 AND name = $2", db.Database, name)
	return s, err
}

// Freeze makes a topic's table refuse every insert, and returns when none that set
// out before is under way: its heads then stay as they are.
func (db *DB) Freeze(ctx context.Context, topic string) error {
	fail := func(err error) error { return fmt.Errorf("freezing table %s: %w", topic, Refusal(err)) }
	if err := db.conn.Exec(ctx, fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT IF NOT EXISTS %s CHECK 0", sql.QuotedTable(db.Database, topic), frozenConstraint)); err != nil {
		return fail(err)
	}
	// An insert takes the table as it is when it begins; one that is listed from
	// now on sees the constraint.
	return db.Ended(ctx, queryPrefix(db.Database, topic), fail)
}

// freezePoll is how often Freeze, and what else waits for statements to end, looks; an insert takes some tens of milliseconds.
const freezePoll = 20 * time.Millisecond

// Ended waits until no statement runs which began before, of those whose query ids have a prefix.
func (db *DB) Ended(ctx context.Context, prefix string, fail func(error) error) error {
	var at int64
	if err := db.conn.QueryRow(ctx, "SELECT toUnixTimestamp64Micro(now64(6))").Scan(&at); err != nil {
		return fail(err)
	}
	q := fmt.Sprintf("SELECT count() FROM system.processes WHERE startsWith(query_id, '%s') AND toUnixTimestamp64Micro(now64(6)) - toInt64(elapsed * 1e6) <= %d",
		prefix, at)
	return db.none(ctx, q, fail)
}

// none waits until a count is 0.
func (db *DB) none(ctx context.Context, q string, fail func(error) error) error {
	tick := time.NewTicker(freezePoll)
	defer tick.Stop()
	for {
		var n uint64
		if err := db.conn.QueryRow(ctx, q).Scan(&n); err != nil {
			return fail(err)
		}
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fail(ctx.Err())
		case <-tick.C:
		}
	}
}

// Thaw lets a table take inserts again.
func (db *DB) Thaw(ctx context.Context, name string) error {
	err := db.conn.Exec(ctx, fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT IF EXISTS %s", sql.QuotedTable(db.Database, name), frozenConstraint))
	if err != nil {
		return fmt.Errorf("letting table %s take inserts again: %w", name, Refusal(err))
	}
	return nil
}

// Exchange gives two tables each other's name, at once.
func (db *DB) Exchange(ctx context.Context, a, b string) error {
	return db.DDL(ctx, "exchanging tables "+a+" and "+b, fmt.Sprintf("EXCHANGE TABLES %s AND %s", sql.QuotedTable(db.Database, a), sql.QuotedTable(db.Database, b)))
}

// Rename gives a table another name.
func (db *DB) Rename(ctx context.Context, from, to string) error {
	return db.DDL(ctx, "renaming table "+from, fmt.Sprintf("RENAME TABLE %s TO %s", sql.QuotedTable(db.Database, from), sql.QuotedTable(db.Database, to)))
}

// Drop drops a table, if there is one.
func (db *DB) Drop(ctx context.Context, name string) error {
	return db.DDL(ctx, "dropping table "+name, fmt.Sprintf("DROP TABLE IF EXISTS %s", sql.QuotedTable(db.Database, name)))
}

// CreateLike makes the topic's table under another name, as it would be made now.
func (db *DB) CreateLike(ctx context.Context, t *schemas.Topic, name string) error {
	named := *t
	named.Name = name
	return db.DDL(ctx, "making table "+name, sql.CreateTable(&named, db.Database))
}

// DDL runs a statement that changes tables. what names in errors what it does.
func (db *DB) DDL(ctx context.Context, what, statement string) error {
	if err := db.conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", what, Refusal(err))
	}
	return nil
}

// Topics lists the tables that Almanac made for topics, by their comment.
func (db *DB) Topics(ctx context.Context) ([]string, error) {
	names, err := db.names(ctx, "tables of "+db.Database,
		"SELECT name FROM system.tables WHERE database = $1 AND startsWith(comment, $2) AND NOT match(name, $3) ORDER BY name",
		db.Database, schemas.TableMark, KeptInfix+"[0-9]{8}T[0-9]{6}Z$")
	return slices.DeleteFunc(names, func(name string) bool { return schemas.ValidateTopicName(name) != nil }), err
}

// LostTopics are the tables of Topics that are not a declared topic's and have rows that belong
// to none: a shard has one table for life, so a table whose shards are all known is a copy
// that a user made, and so is one without rows. shards lists the known ones, and is asked
// only when there is such a table.
func (db *DB) LostTopics(ctx context.Context, declared map[string]bool, shards func(context.Context) (map[schemas.Shard]bool, error)) ([]string, error) {
	made, err := db.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var known map[schemas.Shard]bool
	var out []string
	for _, name := range made {
		if declared[name] {
			continue
		}
		if known == nil {
			if known, err = shards(ctx); err != nil {
				return nil, err
			}
		}
		own, err := db.ownRows(ctx, name, known)
		if err != nil {
			return nil, err
		}
		if own {
			out = append(out, name)
		}
	}
	return out, nil
}

// ownRows reports whether a table has rows of a shard that is not known, or of none.
func (db *DB) ownRows(ctx context.Context, table string, known map[schemas.Shard]bool) (own bool, err error) {
	partitions, err := db.names(ctx, fmt.Sprintf("parts of table %q", table),
		"SELECT DISTINCT partition_id FROM system.parts WHERE database = ? AND table = ? AND active AND NOT startsWith(partition_id, 'patch-')", db.Database, table)
	for _, partition := range partitions {
		ref, ok := shardOfPartition(table, partition)
		own = own || !ok || !known[ref.ID]
	}
	return own, err
}

// KeptInfix stands between a topic's name and a time in the name of a table that a
// rebuild replaced and kept.
const KeptInfix = "_before_"

// Kept lists what rebuilds left beside a topic's table: tables that were replaced,
// and one that was not finished. They have rows that an erasure does not reach.
func (db *DB) Kept(ctx context.Context, topic string) ([]string, error) {
	return db.names(ctx, "old tables of "+topic, "SELECT name FROM system.tables WHERE database = $1 AND (name = $2 OR match(name, $3)) ORDER BY name",
		db.Database, topic+FreshSuffix, "^"+topic+KeptInfix+"[0-9]{8}T[0-9]{6}Z$")
}

// FreshSuffix makes, of a topic's, the name of the table a rebuild fills. No topic
// has such a name.
const FreshSuffix = ".rebuild"

// PosCount is how many rows a position has.
type PosCount struct{ Pos, Rows uint64 }

// RowsByPosition counts the rows of the positions of a shard above one, in order, of at most so
// many. The topic of ref names the table.
func (db *DB) RowsByPosition(ctx context.Context, ref schemas.ShardRef, after uint64, limit int) (ends []PosCount, err error) {
	err = db.each(ctx, fmt.Sprintf("positions of %s", ref), func(scan scan) error {
		var e PosCount
		err := scan(&e.Pos, &e.Rows)
		ends = append(ends, e)
		return err
	}, fmt.Sprintf("SELECT pos, count() FROM %s WHERE month = %d AND shard = %d AND pos > %d GROUP BY pos ORDER BY pos LIMIT %d",
		sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID), after, limit))
	return ends, err
}

// Copy is rows of a shard in one table, by position, to be stored in another as
// one part behind its head.
type Copy struct {
	Topic       *schemas.Topic
	From, To    string // tables
	Month       schemas.Month
	Shard       schemas.Shard
	After, UpTo uint64
	Attempt     int
}

// CopyRows copies. As with Insert, only the head tells what is stored.
func (db *DB) CopyRows(ctx context.Context, c *Copy) error {
	cols := slices.Concat(c.Topic.Columns(c.Topic.Version), []string{schemas.ColMonth, schemas.ColShard, schemas.ColPos})
	q := url.Values{}
	for k, v := range insertSettings {
		q.Set(k, v)
	}
	q.Del("decompress")
	q.Set("deduplicate_insert_select", "enable_when_possible")
	q.Set("insert_deduplication_token", fmt.Sprintf("%s:%s:%d:%d", c.To, c.Shard, c.After, c.Attempt))
	statement := sql.CopyRows{
		From: sql.QuotedTable(db.Database, c.From), To: sql.QuotedTable(db.Database, c.To), Columns: quotedList(cols),
		Month: uint32(c.Month), Shard: uint64(c.Shard), Above: c.After, UpTo: c.UpTo, Moved: TextHeadMoved,
	}.SQL()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, db.base+"/?"+q.Encode(), strings.NewReader(statement))
	if err != nil {
		return err
	}
	body, err := db.do(req)
	if err != nil {
		return fmt.Errorf("copying %s behind %d: %w", schemas.PublicShardName(c.Topic.Name, c.Month, c.Shard), c.After, err)
	}
	return body.Close()
}
