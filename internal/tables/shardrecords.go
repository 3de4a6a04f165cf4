package tables

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// ShardRecord is the last record of a front that a shard has.
type ShardRecord struct {
	Seq uint64 // in the front
	Ts  int64  // unix ns
}

// ShardRecords has the last record of each shard of a topic of documents or timers that has rows.
func (db *DB) ShardRecords(ctx context.Context, t *schemas.Topic) (map[schemas.Shard]ShardRecord, error) {
	out := map[schemas.Shard]ShardRecord{}
	err := db.eachMade(ctx, fmt.Sprintf("last records of topic %q", t.Name), ofShard(t.Name, func(read func(...any) (schemas.ShardRef, error)) error {
		var r ShardRecord
		ref, err := read(&r.Seq, &r.Ts)
		out[ref.ID] = r
		return err
	}), fmt.Sprintf("SELECT month, shard, toUInt64(max(%[1]s)), toUnixTimestamp64Nano(argMax(%[2]s, %[1]s)) FROM %[3]s GROUP BY month, shard",
		kinds.ColSeq, schemas.ColTs, sql.QuotedTable(db.Database, t.Name)))
	return out, err
}

// RecordSeqs are the sequences in the front, above one and up to another and in order, of the records of
// which some shards of a topic of documents or timers have rows.
func (db *DB) RecordSeqs(ctx context.Context, topic string, shards []schemas.ShardRef, above, upTo uint64) (seqs []uint64, err error) {
	if len(shards) == 0 || above >= upTo {
		return nil, nil
	}
	err = db.eachMade(ctx, fmt.Sprintf("records of topic %q", topic), func(scan scan) error {
		var seq uint64
		err := scan(&seq)
		seqs = append(seqs, seq)
		return err
	}, fmt.Sprintf("SELECT DISTINCT toUInt64(%[1]s) AS seq FROM %[2]s WHERE %[3]s AND %[1]s > %[4]d AND %[1]s <= %[5]d ORDER BY seq",
		kinds.ColSeq, sql.QuotedTable(db.Database, topic), InShards(shards), above, upTo))
	return seqs, err
}

// maxListed bounds the sequences that one statement lists; of more it reads the range that they lie in.
const maxListed = 5000

// RecordsThere are those of some records of a lane of a front, by their sequences, of which a topic of documents or timers has rows.
func (db *DB) RecordsThere(ctx context.Context, topic string, lane int, seqs []uint64) (map[uint64]bool, error) {
	there := map[uint64]bool{}
	if len(seqs) == 0 {
		return there, nil
	}
	among := fmt.Sprintf("%[1]s >= %[2]d AND %[1]s <= %[3]d", kinds.ColSeq, slices.Min(seqs), slices.Max(seqs))
	if len(seqs) <= maxListed {
		among = kinds.ColSeq + " IN (" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(seqs)), ","), "[]") + ")"
	}
	asked := make(map[uint64]bool, len(seqs))
	for _, seq := range seqs {
		asked[seq] = true
	}
	err := db.eachMade(ctx, fmt.Sprintf("records of topic %q", topic), func(scan scan) error {
		var seq uint64
		err := scan(&seq)
		if asked[seq] {
			there[seq] = true
		}
		return err
	}, fmt.Sprintf("SELECT DISTINCT toUInt64(%s) AS seq FROM %s WHERE %s AND %s", kinds.ColSeq, sql.QuotedTable(db.Database, topic), sql.InLane(lane), among))
	return there, err
}
