// Package ledger is what an erasure is, what it covers, and what it took from a shard. It
// decides, and reads and writes nothing: package registry keeps the entries in the bucket, and
// package erasure carries them out.
//
// # Model
//
//	Erasure        an entry of the ledger: a condition, a range of time, and a fence
//	Erasures       those of a topic at one moment, the highest fence first
//	Cover          those of them that concern a frame, or several frames that are alike
//	ErasureRecord  what erasures took from one shard: Cuts of rows, Spans of purged positions
//
// The fence is the last sequence of EVENTS, or of the topic's front, when the erasure was
// entered, and that moment by the server's clock. It is raised once, right after the entry is in
// (package erasure), and stays. An erasure means the messages up to its fence (schemas.Source.UpTo). A
// sequence below the fence that EVENTS gave again after a cut was stored later. So it is not
// meant.
//
// An erasure covers a frame of such a message where the times of the two overlap. The events
// in it that match the condition are gone. A part that reads frames asks Erasures.Covering,
// and leaves out what Cover.Keep does not let pass. A frame with no cover passes untouched.
// Frames that Erasures.Alike does not tell apart share one statement.
// In it erasures that differ by their users alone are one condition with one list. What a topic's
// erasures weigh together is bounded when one is entered (Cover.Weight): whatever was accepted can
// be carried out.
//
// An erasure record says how many rows are gone, by position, and which positions were taken out of
// SHARDS. verify, the janitor and repair subtract them.
//
// # States
//
//	Enter            everything covered is stored      no part that is read has a row of it
//	 ─────▶ settling ───────────────────────▶ erasing ────────────────────────▶ erased
//
// Readers leave events out from settling on. Sinks do from erased on only: what is covered
// must be stored once before, to be counted. From then on a sink meets a covered frame only
// if ClickHouse was restored from an older copy.
//
// In a shard, of all erasures at most one is pending. It is counted, then its rows go, then it
// is booked:
//
//	Pending ─▶ its Cuts join Gone, and a Receipt stays ─▶ Join, once the erasure is forgotten
//
// # Who is authoritative
//
// The entry in the bucket is, unless a copy of it was written more often (see package registry).
// What is here is a copy of it, with the revision that was read
// (Rev). A change of a copy counts once registry has written it over that revision. A reader
// may go by a copy that is a second old (registry.LedgerStaleness): an erasure waits as long
// before it relies on its entry.
//
// # Failures
//
// No function here returns an error. Where something is not known:
//
//   - Without a time of the message or of the fence, the sequence alone decides.
//   - Of more than MaxCuts positions, neighbours are joined. A sum may then say that less is
//     gone than is, never more.
//   - A mark of Clearing lapses. So a janitor that was killed does not hold erasures up for good.
package ledger
