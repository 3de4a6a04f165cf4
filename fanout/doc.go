// Package fanout runs functions beside each other for one caller, as errgroup does, and hands a panic
// of theirs on to that caller.
//
// A panic of a goroutine that nothing recovers ends the process. A reader that serves requests must not let one
// of them do that: the handler that waits recovers, and only its request ends.
package fanout
