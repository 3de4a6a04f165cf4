// Package decide decides when an alert begins and ends. It has neither I/O nor a clock.
//
// # Model
//
// A rule is evaluated at instants, the whole seconds of the log's time. Series holds what came: for each
// group the times of acceptance of the events that match, rounded up to the next second. The count of a
// group at T is of the events in (T-window, T]. What comes later and was accepted before T is not known at T,
// so the caller evaluates an instant once all that was accepted before it was added.
//
//	inactive ─ met ─▶ pending ─ met for as long as For ─▶ firing ─ not met for as long as Keep ─▶ inactive
//
// An instant that is not later than the last transition of an alert changes nothing. So instants may be evaluated
// again from any earlier one on, over the same events: the transitions that were made are not made twice.
package decide
