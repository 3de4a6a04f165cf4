// Package streams is the way to NATS: it declares the streams that it is given,
// and reads messages, headers and last messages of any, the registry's bucket
// among them. It is to NATS what package tables is to ClickHouse.
//
// # Model
//
// A message has a sequence in its stream and a subject. There are three kinds of
// read, by name, and two more ways to follow headers and what comes:
//
//	DecideAt, DecideNext, DecideLast   one message, by the stream's leader: what a decision hangs on
//	DecideLastAlone                    the same of a server alone, by a direct get, which costs less
//	Gather                             many messages, by any replica; the end is the leader's word
//	Latest, LatestOf                   the last message of subjects, by a replica not below the leader's end
//	LatestAsOf, LatestAfter            those as of an end that is known, and those above a sequence
//	Headers, LastHeaders, Frames       headers alone, through a consumer that ends with the call
//	Follow                             a Feed without an end, in order
//
// FindFrame, FrameBefore, FindBehind and FirstAfter find a sequence by halving. GivenAgain tells a reader that
// comes back whether the stream lost its end since, and gave the sequences that it knows to other messages.
//
// # Complete or an error
//
// A read that returns nil gave everything, by the server's own count: each answer
// names the message sent before it, and the end names the last. Silence is never an
// end. What is missing is asked for again from where the answer was cut, and then
// the read is ErrCut, which says what to do next.
//
// # Who is authoritative
//
// The server is. A sequence, a subject and a count of what follows are the
// server's own values, never those that a publisher put into its message. In a
// direct get both stand in one header block: parseDirect tells them apart, and asks
// the leader where it cannot. A consumer writes them into the reply subject.
//
// # Changes
//
// Once asks for a change that must not be made twice: without an answer it is ErrCut,
// and it is not known whether the change was made. Delete, Purge and PurgeWith may be
// asked for again, and are.
//
// # Failures
//
// A frame that does not exist is ErrNoFrame. A refused expectation is reported by
// LostRace: read again. A stream that could lose events is ErrUnsafe. Outages ends
// waits whose answer was lost with the connection (ErrDisconnected). Every call ends
// with its context.
package streams
