// Package wheel orders timers by their due time. It has no clock and no goroutine.
//
// # Model
//
// A wheel is a copy of what is in the front, and decides nothing. Its owner takes what is due
// and reads the record before acting on it.
//
// # Failures
//
// None: an entry that is missing, late or twice costs a read, since the record decides.
package wheel
