// Package send sends the records of files and pipes as events: what "almanac send" does between its flags and
// its exit code. Local sends through a producer to NATS, Remote through a gateway over HTTP.
//
// # Model
//
// Files are read one after the other, and their lines are numbered as if they were one file. Each record
// (intake) has one state, and Stats counts how many records are in each:
//
//	waiting    read, and not answered yet
//	accepted   its events are on a disk of NATS
//	refused    it cannot become an event; Refusal names its line and the reason
//	spooled    its events are on this machine's disk, and the next send stores them
//	unknown    sent and not answered: its events may be stored
//	not sent   read when the work ended, and never sent
//
// A record of several events (intake.LongSplit) is answered once: by the first error of its events, if there is one.
// A summary taken when the work has ended counts as not sent what still waits.
//
// Local reads in a goroutine of its own, since a read of a terminal or a pipe cannot be interrupted. Answers come in the
// producer's goroutine, which must not wait: a report of accepted lines is written by another. A pipe that is
// silent for a second ends its last record, where only the next line would tell.
//
// Remote sends requests of whole records, at most 2,000 lines or 1 MiB unless one record is longer. Each has an Idempotency-Key of its own, and is sent again
// until it is answered. A request is sent to be stored whole or not at all; where lines are refused it is sent once more
// to be stored without them.
//
// # Who is authoritative
//
// The producer and the gateway say what was accepted; nothing is counted as accepted before their answer. The
// topic's rules are the producer's, or the gateway's. This package decides when to stop waiting, and no more.
//
// # Failures
//
// Where nothing is accepted, a send goes on, and says so after 2 s and then each minute, with the reason (Local.Why; Try
// finds it). MaxWait bounds that. With a spool a send ends 5 s after the last line and the last event that was stored, and the rest goes to disk.
// A context that ends gives answers that are due 3 s more, and the error is ErrInterrupted. Records without a time
// cannot be told from their copies, so a request with one has no key: one that fails on the way counts as
// unknown, and is not sent again. A report that cannot be written fails the send at its end (Stats.Finish).
package send
