// Package reconcile compares what the frames of a shard brought with the rows that ClickHouse has
// of it, position by position: verify names what differs, repair mends it, and a sink finds where
// two copies of a shard part.
//
// # Model
//
// A frame's headers say how many rows the shard has up to and with it, and the sum of their ids. A
// row has the position of its frame. So each frame that is held, together with the one before it,
// says what must stand at its position, less what the tally says erasures took there.
//
// Where frames are gone, and where the tally joined its cuts, positions are compared together, as one
// stretch. Above the last position of which anything tells, ClickHouse alone knows: the rest.
//
// The comparisons are pure. Look alone asks ClickHouse, for one frame.
package reconcile
