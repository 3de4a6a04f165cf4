package registry

import (
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Cold reports whether the shard, once it is closed, belongs on the cold volume: its youngest event is older than the
// topic keeps near.
func (s *Shard) Cold(t *schemas.Topic, now time.Time) bool {
	return t.ColdAfterDays > 0 && now.After(s.youngest().AddDate(0, 0, t.ColdAfterDays))
}

// youngest is how young the shard's events may be; see Due.
func (s *Shard) youngest() time.Time {
	if s.MinTs > s.MaxTs {
		return time.Unix(0, s.Month.End()-1).UTC()
	}
	return time.Unix(0, s.MaxTs).UTC()
}
