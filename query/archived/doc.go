// Package archived says how far a front is stored in ClickHouse.
//
// # Model
//
// A record of a front moves in its lane's order: past the lane's checkpoint into a frame
// of a shard, and past the shard's head into ClickHouse. So all of a lane is stored up to
// the checkpoint, or up to below the first frame above a head. It reads checkpoints,
// then heads: what moves on meanwhile is said to be stored a little later than it is.
//
// # Failures
//
// A read is complete or an error.
package archived
