// Package timers reads the history of timers in ClickHouse, for those that have left the front.
//
// # Model
//
// Each row is a transition of a timer. The front TIMERS is authoritative for a timer that is
// still in it; the table is complete up to what sinks have stored.
//
// # Failures
//
// A read is whole, or an error that says what to do next.
package timers
