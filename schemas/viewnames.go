package schemas

import "github.com/almanac-events/almanac/schemas/kinds"

// Names of views. No topic may have one, so that no view can stand in the way of
// a table.
const (
	viewRecent = "_recent"             // of each topic: the events of the last day
	viewPrefix = "almanac_"            // of all topics
	ViewShards = viewPrefix + "shards" // of each shard: rows, parts, bytes, first and last event, as ClickHouse's metadata has them
	ViewLag    = viewPrefix + "lag"    // of each topic: its newest event, how old it is, and the newest insert
	// TableLedger is a table: the third copy of the ledger.
	TableLedger = viewPrefix + "ledger"
)

// RecentHours is what <topic>_recent looks back.
const RecentHours = 24

// RecentView is the name of a topic's view of the last day.
func RecentView(topic string) string { return topic + viewRecent }

// TopicViews are the names that the views of a topic have, of whatever kind it is.
func TopicViews(topic string) []string {
	out := make([]string, len(reservedViews))
	for i, suffix := range reservedViews {
		out[i] = topic + suffix
	}
	return out
}

// reservedViews are suffixes of views beside a topic's table. No topic's name ends so.
var reservedViews = []string{viewRecent, ViewOnce, kinds.ViewLatest}

// ViewOnce is the suffix of the view that leaves out repeats.
const ViewOnce = "_once"
