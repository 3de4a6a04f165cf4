// Package streams is the way to NATS: it declares the streams EVENTS and SHARDS,
// and reads messages, headers and last messages of any stream, the registry's
// bucket among them. It is to NATS what package tables is to ClickHouse.
//
// # Model
//
// A message has a sequence in its stream and a subject. Read returns whole
// messages of a filter; Headers returns their headers; LastMessages and LastOf
// return the last message of each subject. FindFrame, FrameBefore, FindBehind and
// FirstAfter find a sequence by halving.
//
// # Who is authoritative
//
// The server is. A sequence, a subject and a count of what follows are the
// server's own values, never those that a publisher put into its message.
//
// # Failures
//
// An answer that ends before the server's count of what follows reaches zero is
// ErrCut. A frame that does not exist is ErrNoFrame. A refused expectation is
// reported by LostRace: read again. A stream that could lose events is ErrUnsafe.
// Outages ends waits whose answer was lost with the connection (ErrDisconnected).
// Every call ends with its context.
package streams
