// Package positions plays which position the rows of a shard carry: that of their frame, whatever
// an insert joins, a filter leaves out, an erasure takes, a repair stores again, and an older copy of
// ClickHouse brings back.
//
// One seed decides the order of steps. A step is one request to a server, so that another part may
// come between any two: two sinks, an erasure, a repair. Frames have one to three rows, of which
// some are of the person who is erased.
//
// In the end the rows of each position are those of its frame, once each, without those that were
// erased, and every sink stands at the last frame. TestMutants takes each guard away.
package positions
