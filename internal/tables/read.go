package tables

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// scan reads the next columns of a row.
type scan func(into ...any) error

// each calls f for every row of a statement's answer. what names in errors what is read.
func (db *DB) each(ctx context.Context, what string, f func(scan) error, statement string, args ...any) error {
	rows, err := db.conn.Query(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, Refusal(err))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, Refusal(err))
	}
	return nil
}

// eachMade is each of a table of which no row is read when it was not made yet.
func (db *DB) eachMade(ctx context.Context, what string, f func(scan) error, statement string, args ...any) error {
	if err := db.each(ctx, what, f, statement, args...); !errors.Is(err, ErrNoTable) {
		return err
	}
	return nil
}

// names reads an answer of one column of names.
func (db *DB) names(ctx context.Context, what, statement string, args ...any) (names []string, err error) {
	err = db.each(ctx, what, func(scan scan) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	}, statement, args...)
	return names, err
}

// HeadsBy reads an answer of shards and their highest positions.
func (db *DB) HeadsBy(ctx context.Context, what, statement string) (map[schemas.Shard]uint64, error) {
	heads := map[schemas.Shard]uint64{}
	return heads, db.eachMade(ctx, what, func(scan scan) error {
		var shard, pos uint64
		err := scan(&shard, &pos)
		heads[schemas.Shard(shard)] = pos
		return err
	}, statement)
}

// ofShard makes f, which reads a shard and what else its row has, a reader of rows that begin
// with a month and a shard.
func ofShard(topic string, f func(read func(into ...any) (schemas.ShardRef, error)) error) func(scan) error {
	return func(scan scan) error {
		return f(func(into ...any) (schemas.ShardRef, error) {
			var month uint32
			var id uint64
			err := scan(append([]any{&month, &id}, into...)...)
			return schemas.ShardRef{Topic: topic, Month: schemas.Month(month), ID: schemas.Shard(id)}, err
		})
	}
}

// EachShard runs a statement whose rows are a month, a shard and so many numbers.
func (db *DB) EachShard(ctx context.Context, topic, q string, f func(schemas.ShardRef, []uint64), count int) error {
	return db.each(ctx, fmt.Sprintf("shards of topic %q", topic), ofShard(topic, func(read func(...any) (schemas.ShardRef, error)) error {
		n, into := make([]uint64, count), make([]any, count)
		for i := range n {
			into[i] = &n[i]
		}
		ref, err := read(into...)
		if err == nil {
			f(ref, n)
		}
		return err
	}), q)
}
