// Package fanout runs functions beside each other for one caller, as errgroup does. A panic of one reaches the caller.
//
// A panic that nothing recovers ends the process. No request may do that. The handler that
// waits recovers, and only its request ends.
package fanout
