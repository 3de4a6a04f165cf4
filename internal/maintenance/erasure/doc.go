// Package erasure takes events out of Almanac for good: of users, of a time range,
// by a filter, or by all three together.
//
// # Model
//
// An erasure is an entry of the ledger (see package internal/registry/ledger): a condition, and a
// fence: the last sequence of EVENTS when it was entered, and when that was. What was
// accepted up to the fence and matches is erased. What the same user does afterwards
// is kept, also where EVENTS lost its end since and gives sequences below the fence
// again. Where the server's clock was set back, an erasure that is entered before the
// clock reaches its old time again does not mean what was stored with later times.
// Start reads the end of EVENTS once more when the entry is in, and raises the fence to it. So a program that writes
// what it read, as rules that record do, and finds no entry afterwards, wrote below the fence. One that finds an
// entry, or another fence, may have written above it.
//
//	Start           Run: settle                      Run: sweep                    Run
//	 ────▶ settling ────────────▶ erasing: shard after shard, counted, taken, booked ───▶ erased
//
// Settle waits until everything up to the fence is stored: whatever is covered
// then stands in ClickHouse, where it can be counted. For the shards that go on
// growing it notes the last covered position. Each row has the position of its frame,
// so that tells which rows are covered, whatever an insert joined.
//
// Only the frames at the fence tell how far an erasure covers a shard that grew on. So a part
// that takes frames out of SHARDS, a purge or the janitor, first notes in the erasures that are settling what
// the frames tell (pin.go). An erasure that was killed while it settled ends whenever it is resumed.
//
// Sweep counts the whole topic with one statement for a thousand shards, and
// touches only the shards that have matches. It ends once nothing is found when all is stored. ClickHouse may be
// restored from an older copy meanwhile. Then sinks fill it again, with the erased too. In each:
//
//	count ─▶ intent in the erasure record ─▶ floor ─▶ delete, or drop the partition ─▶ rewrite ─▶ look ─▶ book
//
// The delete is a patch part: at once no read sees the rows. The rewrite merges
// that partition alone, and the look asks for rows as if no patch were there. A
// closed shard of which nothing stays is dropped as a partition instead.
//
// # Documents
//
// Where events come from a front, the fence is the end of that stream, and the condition
// names the sequences up to it: a frame of a run may have records from both sides.
// Before the sweep the front is cleared (front.go). The subject of a document all of whose
// versions are erased is purged, whether it has a record or a stub. Where older versions
// stay and the last one is erased, a removal follows: an old state must not come up again.
// A refresh or stub counts by the sequence of the record that it stands for: the cleaner may
// write it after the erasure was entered, above the fence.
// Loads and lists pass over what an erasure means from its entry on.
//
// # Timers
//
// A timer whose present life is meant is cancelled before its records go (timers.go). That
// is a record of its own, after the fence, which names no user. Reads of
// timers pass over what an erasure means from its entry on, as those of documents do.
//
// # Sums of dropped shards
//
// Of a meter's shard that retention dropped the sums stay (sums.go). They know meter, provider,
// space and customer, and no time within the month. An erasure that names nothing else is carried
// out in them after the sweep, under the same intent and receipt; one that names more is
// refused. One that was entered before the shard was dropped, and could not be carried out in
// its rows, is not certified.
//
// # Who is authoritative
//
// The ledger says what is to be gone, the shard's erasure record how many rows are. One
// erasure at a time is pending in a shard, and its numbers are written before a row
// goes, with the last position that was stored then. What sinks store above it stays for the next
// pass, which counts it. A process that finds an erasure pending ends it, so nothing depends on the
// process that began, and of two over the same rows one counts them.
//
// While retention clears fields in a shard, an erasure waits to count there, and
// retention does not begin below a pending one: both marks stand in the erasure record.
//
// # Seals
//
// The rows of a sealed shard are digested before any of them goes, and compared with the seal
// (sealed.go). What differs was changed since: the receipt and the next seal keep the digest,
// and the erasure is not certified.
//
// # Crash points
//
//	killed                              what is left                     resumed by
//	after the entry, before the fence   entry, settling                  Run; what was accepted between the two is kept
//	after Start                         entry, settling                  Run, from settle
//	settled, before the intent          entry, erasing                   Run, counting again
//	after the intent or the floor       numbers, all rows                finish: deletes, rewrites, books
//	after the delete                    numbers, rows hidden             finish: rewrites, books
//	after the rewrite                   numbers, no rows                 finish: books
//	after the intent in sums            numbers, all sums                finish: takes them out, books
//	swept, before the last entry        every shard booked               Run: finds nothing, totals the receipts
//	after the mark, before its count    marked, erasing                  Run: sweeps what an older copy brought back
//
// # What brings nothing back
//
// Pages, counts, the tail and replay leave out what Cover.Keep does not let pass.
// A sink does so with frames that an erasure covers which has ended: it meets one
// only when ClickHouse was restored from an older copy. Rows which that copy itself
// brought back go when Run is called again. They are not counted twice.
//
// # Copies from before an erasure
//
// The entry is copied into ClickHouse before a row goes (third.go), and there it is marked as
// applied before it ends: the mark lies with the rows. They are counted once more after the mark, for an
// older copy may have been restored just before it. Agree compares the copies. An entry that ClickHouse
// alone remembers is entered again; an erasure that ended and is not marked there is carried out again.
// Until then readers of the topic refuse (registry.ErrBehind). A Keeper does that beside the sinks, and
// `almanac up` before it serves anything.
//
//	restored from before the erasure    told by                          then
//	the bucket                          its copies count more            restored
//	ClickHouse                          its ledger lacks the mark        carried out again
//	all streams                         ClickHouse's ledger counts more  entered, carried out again
//
// A front that was restored alone has records again of which ClickHouse has no row (returned.go). All up to
// the fence was stored before a row went, so each record without a row is evaluated by itself: by its headers, by
// the filter over its body, and, where the users were redacted, by their pseudonyms. A stub whose shard has all
// rows but those that erasures took stands for nothing, and goes. Of a filter that was redacted nothing is known:
// readers refuse what it may mean, verify names it, and Run takes it out once a person asks for it.
//
// A partition or table that was restored alone brings its rows back beside a newer ledger: verify
// names them, and Run takes them out.
//
// # Physical removal
//
// The parts that were replaced stay on disk, unread, for the table's
// old_parts_lifetime (480 s). Show says how many and until when. The streams let go
// by age. Purge overwrites the messages at once. A frame is purged whole: what
// others had in it is in ClickHouse alone from then on, and a ClickHouse restored
// from a copy from before that insert cannot be filled again from SHARDS there. The
// sink stops with the range. Copies elsewhere are not known here; of a
// backup a restore carries out what was erased since (internal/backup).
//
// # Failures
//
// ErrUnstored: Purge found a shard whose rows in ClickHouse do not add up with its
// frames, when it began or since. It takes no more of it. ErrNotStored: routers or sinks did not come to the end in time.
// Run goes on later. ErrStillThere: the streams have events of the erasure, or may, so its entry
// is neither forgotten nor redacted: the entry keeps them from coming back. ErrLate: while an erasure settled, the frames at its fence left
// SHARDS and that was not noted, as with a copy of SHARDS: a bound taken too high would erase
// what came after. Once another erasure of the same has ended, Run ends this one too:
// what it cannot tell apart the other took.
//
// A dropped partition takes ClickHouse's insert tokens with it: a sink that slept since
// before the shard was closed can store its rows again. verify names them, and the
// next round of any sink's janitor drops them again: a closed shard whose entry has
// no rows, and whose erasure record says that it was dropped, holds nothing that may stay.
package erasure
