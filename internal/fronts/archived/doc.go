// Package archived says how far a front is stored in ClickHouse.
//
// # Model
//
// A record of a front moves in its lane's order. It passes the lane's checkpoint into a
// frame of a shard. It passes the shard's head into ClickHouse. So all of a lane is stored
// up to below the first frame above a head. Without such a frame it is stored up to the
// checkpoint. What moves on during the read counts as not stored yet.
//
// # Failures
//
// A read is complete or an error.
package archived
