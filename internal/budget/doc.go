// Package budget bounds the memory that the reads of a process hold together.
//
// # Model
//
// A Budget is some bytes. Each read that a process serves has an Account, which travels in the context
// of the read. What grows with what is stored takes from the account before it is kept: rows of
// ClickHouse's answers, frames that are not stored yet, records of fronts, points of PromQL. A
// context without an account, as that of a verb, is not bounded here.
//
// What is taken is an estimate: the bytes that came, times what they become (Reader). What
// streams through a read of a fixed buffer takes nothing.
//
// # Failures
//
// An account that would hold more than its share is refused with ErrLarge: the read is to be narrowed. One that
// finds no room beside the others is refused with ErrFull: the read is to be sent again. Neither waits.
// Ending an account gives back all that it took.
package budget
