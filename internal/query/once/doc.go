// Package once says which rows of a topic count, where equal events count once.
//
// # Model
//
// <topic>.repeats names the rows that do not count, of every shard up to the position to which
// it was examined (package rollups). A Snapshot is how far each shard is. It gives conditions
// for a statement that reads the topic's rows:
//
//	a lane that was examined    its rows up to the heads that the snapshot found, without those that are named
//	one that was not            all its rows, without those that are named and those that the statement itself
//	                            finds to be repeats of rows above what was examined
//
// Copies have one lane, so a lane that was examined is not looked through for the rows of another.
//
// # Who is authoritative
//
// The topic's rows are. The snapshot is read before the statement, and the statement asserts
// that no name came or went since (Unmoved). When one did, it is ErrMoved and asked again.
//
// # Failures
//
// Every call ends with its context. What fails names the topic.
package once
