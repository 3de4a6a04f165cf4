package router

import (
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

// Full is full, of a shard with so many frames and rows over a range.
func Full(r schemas.Rotation, frames, rows uint64, minTs, maxTs, lo, hi int64) string {
	s := &shardState{entry: registry.Shard{MinTs: minTs, MaxTs: maxTs}, tail: tail{pos: frames, rows: rows}}
	return full(r, s, lo, hi)
}
