package query

import (
	"fmt"

	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/schemas"
)

// seenFrames are the frames that a walk opened, by their names.
type seenFrames map[string]bool

// namesOf are the digest of a frame's bytes, and what else it can be known by where a router may make it again under
// newer privacy rules: its bytes in SHARDS are then others than in EVENTS.
func namesOf(f *recent.Frame, t *schemas.Topic) []string {
	names := []string{schemas.Digest(f.Payload)}
	if f.Producer != "" && t.RulesAfter(0) != nil {
		names = append(names, fmt.Sprintf("%s %d %d %d %d", f.Producer, f.Seq, f.Rows, f.MinTs, f.MaxTs))
	}
	return names
}

func (s seenFrames) has(names []string) bool {
	for _, name := range names {
		if s[name] {
			return true
		}
	}
	return false
}

func (s seenFrames) add(names []string) {
	for _, name := range names {
		s[name] = true
	}
}
