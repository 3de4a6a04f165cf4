package sql

import (
	"fmt"
	"github.com/almanac-events/almanac/schemas"
	"strings"
)

// View is a ready-made view for people and dashboards.
type View struct{ Name, Select string }

// Views are the ready-made views of the topic's newest schema version, and those
// of all topics in the database. Sizes and ranges come from ClickHouse's metadata:
// asking for them reads no events.
func Views(t *schemas.Topic, database string) []View {
	cols := append(t.Columns(t.Version), schemas.ColMonth, schemas.ColShard, schemas.ColPos)
	for i, c := range cols {
		cols[i] = QuoteName(c)
	}
	in := "database = '" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(database) + "' AND match(table, '" + schemas.NamePattern.String() + "') AND match(partition_id, '^[0-9]{6}-[0-9]+-')"
	views := []View{
		{schemas.RecentView(t.Name), fmt.Sprintf("SELECT %s FROM %s WHERE ts >= now64(9, 'UTC') - INTERVAL %d HOUR",
			strings.Join(cols, ", "), QuotedTable(database, t.Name), schemas.RecentHours)},
		{schemas.ViewShards, `SELECT table AS topic,
 toUInt32(splitByChar('-', partition_id)[1]) AS month,
 lower(leftPad(hex(toUInt64(splitByChar('-', partition_id)[2])), 16, '0')) AS shard,
 sum(rows) AS stored_rows, count() AS parts, sum(bytes_on_disk) AS disk_bytes, sum(data_uncompressed_bytes) AS raw_bytes,
 min(min_time) AS first_event, max(max_time) AS last_event
 FROM system.parts WHERE active AND ` + in + ` GROUP BY table, partition_id`},
		// A part that was inserted and since merged is listed for some minutes more.
		{schemas.ViewLag, `SELECT table AS topic, sumIf(rows, active) AS stored_rows, maxIf(max_time, active) AS newest_event,
 dateDiff('second', newest_event, now('UTC')) AS event_lag_seconds,
 maxIf(modification_time, level = 0) AS newest_insert
 FROM system.parts WHERE ` + in + ` GROUP BY table`},
	}
	for _, v := range t.Spec().Views {
		views = append(views, View{t.Name + v.Suffix, strings.TrimSpace(render(t, v.Select, database))})
	}
	return views
}
