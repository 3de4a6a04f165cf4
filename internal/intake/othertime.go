package intake

import (
	"github.com/almanac-events/almanac/schemas"
)

// otherTimes are keys under which programs keep the time of a record, and that are not ours: of some
// records they mean another time, so they are offered and not taken.
var otherTimes = []string{
	"date", "datetime", "created_at", "createdAt", "event_time", "eventTime", "@t", "asctime", "_time", "time_local", "Timestamp", "Time", "logged_at",
	"occurred_at", "__REALTIME_TIMESTAMP", "published", "startTime", "start_time", "timeMillis", "instant",
}

// otherTime is the first of otherTimes that an event has, and that holds a time.
func otherTime(ev *schemas.Event) string {
	for _, name := range otherTimes {
		for i := range ev.Attrs {
			if a := &ev.Attrs[i]; a.Key == name {
				if _, ok := a.AsTime(); ok {
					return name
				}
			}
		}
	}
	return ""
}
