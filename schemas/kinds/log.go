package kinds

// Base columns that specs name; package schemas has all of them.
const (
	ColTs         = "ts"
	ColID         = "id"
	ColType       = "type"
	ColUserID     = "user_id"
	ColService    = "service"
	ColAttributes = "attributes"
)

// logs are append-only events with rotating shards.
var logs = Spec{
	Kind: Log, Short: "events with attributes",
	LaneBy: []string{ColUserID},
	Rotate: defaultRotation,
	Table:  "log.sql",
	Sort:   []string{ColTs, ColID},
}
