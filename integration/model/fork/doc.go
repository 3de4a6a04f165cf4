// Package fork plays what happens to a shard when NATS is restored from an older copy beside a
// newer ClickHouse: a router gives positions again, and sinks move what ClickHouse lacks.
//
// One seed decides the order of steps. A step is one request to a server, so that a part may be
// killed, or another may come, between any two. The router works with what it read when it began.
// Two sinks work at once. The copy is made and restored at any step, up to twice.
//
// In the end every event that was accepted is stored once, unless a restored copy took it from the
// streams before it was stored, and no row that was stored is gone. TestMutants takes each guard away.
package fork
