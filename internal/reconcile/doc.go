// Package reconcile compares what the frames of a shard brought with the rows that ClickHouse has
// of it, position by position: verify names what differs, repair mends it, and a sink finds where
// two copies of a shard part.
//
// # Model
//
// A frame's headers say how many rows the shard has up to and with it, and the sum of their ids. A
// row has the position of its frame. So each frame that is held, with the one before it, says what
// must stand at its position. What erasures took there, by the erasure record, is taken off.
//
// Positions are compared together, as one stretch, where frames are gone. So they are where the erasure record joined
// its cuts. Above the last position of which anything tells, ClickHouse alone knows: the rest.
//
// The comparisons are pure. Look alone asks ClickHouse, for one frame.
package reconcile
