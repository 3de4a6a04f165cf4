package verify

import (
	"fmt"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// sayFork says of a shard that forked what is under way, or what was found: the rows of frames
// that SHARDS lost when it was restored from an older copy were accepted too, and ClickHouse kept them.
func sayFork(s *ShardReport, e *registry.Shard) {
	switch f := e.Fork; {
	case f == nil:
	case !f.Done:
		s.problem("%s was restored from an older copy and gave positions again; a sink moves what ClickHouse lacks to %s", schemas.StreamShards,
			schemas.PublicShardName(e.Topic, e.Month, f.To))
	default:
		s.Note = fmt.Sprintf("%s was restored from an older copy: behind position %d ClickHouse has what was there before, %d frames went to %s",
			schemas.StreamShards, f.At, f.Frames(), schemas.PublicShardName(e.Topic, e.Month, f.To))
	}
}
