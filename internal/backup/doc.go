// Package backup copies a running Almanac into a directory or a bucket, and puts such a copy into empty servers.
//
// # Model
//
//	DEST/objects/ab/<sha256>    a file of a backup, named by its content: what two backups share is there once
//	DEST/<point>.backup         the manifest of one backup: what it has, and the digest of each file
//
// The manifest is written last, under its name at once. So a backup is whole or there is none: what a
// killed one left are objects, which the next one finds and keeps. Each manifest stands alone, and any may be removed.
//
// DEST is a Place: a directory, or a bucket of an object store. Both have these files and nothing else, and the rest of the package does not
// know which it is. One process writes at a time. In a directory a lock says so, in a bucket a lease (lease.go): who writes renews a file
// under the condition that it is as it was left. Before a manifest is written, and before files are removed, it is renewed once more.
//
// # The order of copying
//
// Events go from EVENTS to SHARDS to ClickHouse. What lies downstream is copied first:
//
//	ClickHouse: ledger, derived tables, topics ─▶ copies ─▶ registry ─▶ DOCS, TIMERS ─▶ EVENTS, SHARDS
//
// ClickHouse is thus an older copy than the streams, and sinks store again what it lacks. The ledger is
// older than the rows, so it claims of no erasure that these rows are without it.
//
// The registry's last message names the point in time. EVENTS and SHARDS are copied after it and cut there, by the times that the server
// gave their messages, and never within an atomic batch. What the registry says of a shard was written before the point, and so were
// the frames that it speaks of. What was published up to it has its place in the registry, for a router writes that first.
//
// In DOCS and TIMERS a newer record takes the older one's place, so they cannot be cut there. They are as of
// a moment later, which the manifest names. A router reads what is new there as after any stop.
//
// # Streams
//
// A snapshot is what JetStream gives: messages with their sequences and times, up to the end of the stream when it
// began. It lacks what was deleted meanwhile. Where a newer message takes an older one's place, both may be missing. So of
// the registry and the fronts what came since is read too, until a round lacks none of its messages (catchUp).
//
// Messages are kept in chunks of some 4 MiB (chunks.go). Where a chunk ends is told by the message at its end alone, so what leaves the
// stream's beginning moves no later chunk. Chunks end where those of the backup before did, too: what came since is not written together with
// the end of that one. Of SHARDS the checkpoints are chunks of their own: a janitor takes most of them away from between the frames. So a second backup
// adds what is new, and the rest of the first chunk of each stream.
//
// # Tables
//
// BACKUP writes files where the engine may, from where they are taken into the objects. The metadata of the backup
// before says which files are there already (base_backup), and is made whole again afterwards: files, not a chain.
// A table is restored under the storage policy that it had, or where the target does not know that, under the one of a new table.
//
// # One topic alone
//
// Restore leaves out the messages, entries and tables of other topics. Numbers of messages stay, so a stream has gaps, as after an erasure.
// The copy of the ledger is left out whole, for it names persons of all topics. The registry, which has the topic's own, gives it again.
//
// # One month alone
//
// All months are restored, what was on its way is stored, and the erasures since are carried out. Then the shards of other months go by the
// steps of retention (retention.KeepMonth), so that every number that goes on beyond a month stays what it was, and verify proves the rest.
//
// # Who is authoritative
//
// The manifest is, for what a backup has. A file that does not have its digest is refused by name, before anything is restored.
// The ledger of the erasures that were entered since lies elsewhere: with the caller, who enters it before anything is served.
//
// # What may not be purged meanwhile
//
// The janitor waits while streams are copied (streams.Copying). It would take the checkpoint before the point out of SHARDS while a newer one
// is above it, or out of EVENTS what was routed since. A copy in which a lane lacks its checkpoint is made again (checkpoints.go).
//
// So does whatever else takes messages out: each removal says what it does meanwhile (streams.WhileCopied). A purge of an erasure would take frames
// whose other events the copy's tables are too old to have; a dead letter that is sent again is above the point where it comes to, and gone where it was.
// Erasures go on, since what they take is to go. Whom they named stays in the registry until the copy ends: it may have their rows.
//
// # Failures
//
//	the object store refuses or does not answer   ErrObjectStore, after some attempts. It is not damage
//	killed while copying       objects without a manifest: run it again
//	killed while restoring     the target keeps its marks, and no part starts there: run it again, it goes on (target.admits)
//	a byte differs             ErrDamaged names the file
//	--keep removes it while it is read   ErrRemoved
//	a manifest is cut          ErrTorn
//	a manifest is of another format   ErrFormat: the Almanac that wrote it reads it
//	a manifest names files that no backup has, or streams of others   ErrTorn, whatever its digest is
//	a ledger is older than the backups know, or lacks what they know   ErrOldLedger
//	the target has something   ErrNotEmpty
package backup
