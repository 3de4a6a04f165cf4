// Package positions plays which position the rows of a shard carry: that of their frame.
//
// Inserts join frames, a filter leaves rows out, and an erasure takes some. A repair stores rows
// again, and an older copy of ClickHouse brings them back.
//
// One seed decides the order of steps. A step is one request to a server. Between any two another
// part may come: one of two sinks, the erasure, a repair. A frame has one to three rows. Some are of
// the person who is erased.
//
// In the end each position has the rows of its frame, once each. Erased ones are gone. Every sink
// stands at the last frame. TestMutants takes each guard away.
package positions
