package sql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// StoredColumns is the SELECT list that frame.Reader.OpenStored reads: the columns of the
// newest schema version, then pos.
func StoredColumns(t *schemas.Topic) string {
	var b strings.Builder
	for _, c := range t.Columns(t.Version) {
		b.WriteString(QuoteName(c) + ", ")
	}
	return b.String() + schemas.ColPos
}

// RowsDigestSQL selects the rows of a shard as a seal's digest is over them: SHA-256 of the
// answer. They are the columns of a schema version, in the order of time and id, as RowBinary.
// Positions are not among them: a table that is rebuilt may have others.
func RowsDigestSQL(t *schemas.Topic, database string, ref schemas.ShardRef, version int) string {
	cols := t.Columns(version)
	for i, c := range cols {
		cols[i] = QuoteName(c)
	}
	list := strings.Join(cols, ", ")
	return fmt.Sprintf("SELECT %s FROM %s WHERE month = %d AND shard = %d ORDER BY ts, toUInt128(id), sipHash128(%s) FORMAT RowBinary",
		list, QuotedTable(database, t.Name), uint32(ref.Month), uint64(ref.ID), list)
}

// InLane is the SQL condition of the rows of a lane's shards. ClickHouse looks at no other parts.
func InLane(lane int) string {
	least := uint64(lane) << schemas.LaneShift
	return fmt.Sprintf("%s BETWEEN %d AND %d", schemas.ColShard, least, least|(1<<schemas.LaneShift-1))
}

// InLanes is InLane of some lanes. Without one, no row fulfils it.
func InLanes(lanes ...int) string {
	if len(lanes) == 0 {
		return "0"
	}
	some := slices.Clone(lanes)
	slices.Sort(some)
	some = slices.Compact(some)
	conds := make([]string, len(some))
	for i, lane := range some {
		conds[i] = InLane(lane)
	}
	return "(" + strings.Join(conds, " OR ") + ")"
}
