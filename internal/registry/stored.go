package registry

import "github.com/almanac-events/almanac/schemas"

// Ref names the shard.
func (s *Shard) Ref() schemas.ShardRef {
	return schemas.ShardRef{Topic: s.Topic, Month: s.Month, ID: s.ID}
}

// Head returns the committed position of a shard whose rows reach up to stored: the
// registry's floor states what was stored and is gone on purpose.
func (s *Shard) Head(stored uint64) uint64 { return max(stored, s.Floor) }
