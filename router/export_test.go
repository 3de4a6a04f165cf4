package router

import (
	"github.com/almanac-events/almanac/schemas"
)

// Full is full, of a shard with so many frames and rows.
func Full(r schemas.Rotation, frames, rows uint64, top, hi int64) string {
	return full(r, &shardState{tail: tail{pos: frames, rows: rows}}, top, hi)
}
