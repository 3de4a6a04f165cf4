package schemas

import "time"

// DefaultSQLFresh is how soon SQL has an event of a topic that says nothing else. An
// insert costs ClickHouse 27 ms of CPU whatever it brings: once a second and shard that is
// 27 µs an event at 1,000 events/s and lane, and a tenth of it at this. Queries see events at
// once all the same, and so does SQL where a reader waits for it.
const DefaultSQLFresh = 10 * time.Second

// Bounds of sql_fresh. Routing and an insert take most of a second where the machine is
// busy; an hour of events is still a usual batch of frames in SHARDS.
const (
	MinSQLFresh = time.Second
	MaxSQLFresh = time.Hour
)

// FreshWithin is how long an accepted event may take until SQL has it.
func (t *Topic) FreshWithin() time.Duration {
	if t.SQLFresh == 0 {
		return DefaultSQLFresh
	}
	return t.SQLFresh
}
