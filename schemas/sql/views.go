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
		{schemas.ViewShards, runSQL("view_shards.sql", map[string]any{"In": in})},
		{schemas.ViewLag, runSQL("view_lag.sql", map[string]any{"In": in})},
	}
	for _, v := range t.Spec().Views {
		views = append(views, View{t.Name + v.Suffix, strings.TrimSpace(render(t, v.Select, database))})
	}
	return views
}
