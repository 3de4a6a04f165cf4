// Package spool keeps frames on disk that cannot be sent now, for this process
// or the next.
//
// # Model
//
// A spool is a directory of one topic that one process holds (flock):
//
//	lock                          held while a process has the spool open
//	topic.json                    the topic's descriptor as last read, to start without a server
//	acks                          up to which seq each producer's lane is settled; appended, fsynced
//	00000007-<salt>.spool         a segment: records one after the other
//	00000003-<salt>.spool.damaged a segment that had a broken record; kept for people, counted in the bound
//
// A record is a frame with everything it was, or will be, published under: topic,
// month, lane, producer, seq, headers, payload. It is written once and never
// changed. Its checksum (CRC-32C) covers the segment's salt and its own place,
// so bytes of a record inside an event, or of an older file, never pass for one.
//
// # States
//
//	appended ──▶ durable ──▶ read ──▶ settled ──▶ marked ──▶ deleted
//
// Append writes a record. It survives the death of the process from then on, and
// of the machine once it is durable, at most Options.Sync later. Next reads the
// records back in the order they were appended, one at a time. Settle says up to
// which seq a lane is done with (stored, or given up for good). The goroutine of
// Run makes both durable and deletes segments of which everything was read
// and is settled under a durable mark.
//
// # Who is authoritative
//
// The stream: a record says what was to be sent, never that it was stored. The
// marks only spare repetitions, but they must not fall too far behind: a router
// tells repetitions apart for schemas.MaxInFlight seqs of a lane. So a
// sender asks Durable before it goes further than that beyond the lowest record
// without a durable mark (producer/spooling.go).
//
// # Failures
//
//	killed while appending       the torn tail is cut at the next Open, and counted
//	a record was changed         skipped, counted, named by file and place; the next one is found again
//	a mark was changed           skipped, counted: the lane is repeated from the mark before
//	the disk is full or fails    Append fails, what it wrote is taken back; the caller keeps the frame
//	the bound is reached         ErrFull
//	another process holds it     ErrLocked
//	power failure                what was not durable is gone: at most Options.Sync of frames
//
// # Bounds
//
// Segments together have at most Options.MaxBytes. The file acks has at most 256 KiB
// before it is rewritten, with 60 bytes for each lane of each producer since
// the spool was last empty. One record and one buffer of 64 KiB are in memory.
package spool
