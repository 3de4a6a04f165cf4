// Package timers creates, reads, changes and deletes timers. It stands on the front TIMERS and the groups
// of the registry; package dispatch calls what is due.
//
// # Model
//
// A group belongs to a topic of kind timer and has a number of slots, which is frozen. A timer is a key of
// its group. A group may have a bound of timers and of bytes; holdings count what it has in the front.
// A timer's states and transitions are package schemas/timer's; each write here is one of them, as
// one message under compare-and-set.
//
// # Who is authoritative
//
// The last record on the timer's subject. An update or a delete races with the dispatcher's claim, and
// exactly one of the two wins. The loser of an update is told that the timer is firing.
//
// # Failures
//
// What cannot be scheduled is a *timer.Refusal with a code; nothing was written. A write without an answer
// is read back by fronts.Writer, so a caller may repeat a create: the same content is the same timer,
// as long as it is not over. A timer that is over leaves the front once its rows were read back from
// ClickHouse. Get and History then ask the Archive.
package timers
