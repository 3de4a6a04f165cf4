// Package watchdog notices that a server is away, or that it vanished from a connection which stays open.
//
// # Model
//
// A Transport sends the requests of one server. Its Breaker finds out once for all of them that the server is away
// (breaker.go). Its Questioner asks about those that are silent, over a new connection (questioner.go).
//
// # Who is authoritative
//
// The server is. Silence proves nothing: a request ends early only where the server answered twice that it does not
// run it.
//
// # Failures
//
// A request without an answer is ErrUnreachable; so is each one while the breaker is open, at once. One whose server
// vanished is ErrVanished, but what only reads is sent once more first (again.go). Every question and probe is bounded, and there is one of each at a time.
package watchdog
