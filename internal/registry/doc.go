// Package registry says who may write where. It stands on one JetStream KV
// bucket, and every part of Almanac that reads or writes shards asks it.
//
// # Model
//
//	topics.<topic>             the topic's descriptor
//	<topic>.<YYYY-MM>          the head entry: the active shard of each lane
//	<topic>.<YYYY-MM>.<shard>  the shard's entry: order in its lane, range, status, numbers
//	leases.<role>.<member>     who is alive, to share the work
//	ledger.<topic>.<erasure>   which events are to be gone, for good
//	ledger.<topic>.<YYYY-MM>.<shard>   what erasures took from the shard
//	<stream>.end                       the last message of the stream, as the janitor last saw it
//	ENGINE                             which ClickHouse has the rows
//	CLUSTER                            what tells this Almanac from others, since its first backup
//	SEARCHES.<name>                    a search that was saved
//	groups.<topic>.<group>             a group of timers
//	letters.<topic>                    what became of dead letters by hand
//	jobs.<verb>.<id>                   a long work that can be taken up again
//	SHARDS.<topic>.<lane>              a copy of the lane's checkpoint
//	DERIVED.<topic>                    which drops of what is derived from its rows are under way
//	PROOFS.<topic>[.<YYYY-MM>.<shard>] what verify proved, and how far it read
//	SEALS.<topic>[.<number>]           the chain of seals over closed shards, and its end
//	REMOVALS.<topic>                   that the topic is being removed, or was
//	ALERTS.<group>                     the rules of a group of alerts, with RULING as whose turn it is to change them
//
// # States of a shard
//
//	          Place, Rotate               Seal                  Close
//	(nothing) ─────────────▶ active ─────────────▶ sealed ─────────────▶ closed
//
//	                                                    MarkDropping             MarkDropped
//	                                             closed ─────────────▶ dropping ─────────────▶ dropped
//
// active: its lane's new frames go there, or, with LeftAt, went there until a
// rotation left it. sealed: no frame stands above
// SealedAt, ever. closed: all of it is stored; its numbers are final and exact. dropping: past its
// topic's retention, its events go; dropped: they are gone. Retire is a rotation
// without a successor, for what retention is to drop or anonymise.
//
// # Order
//
// An entry says how far its lane was when it made the shard (Order), and, once sealed, where the last frame came
// from (Ended). Both are points of the lane's stream, so they compare across months, and no clock is asked. Compare
// is the one order of shards, and Precedes says that all of one came before all of another.
//
// # Retention
//
// NextStep says what it asks of a shard, from the entry and the topic's descriptor,
// which rules every month. A shard goes whole, when its youngest event is past.
//
// # Who is authoritative
//
// The head entry alone says which shard is active; it changes by compare-and-set
// together with the entries it concerns, in one atomic batch on the bucket's
// stream. A shard's time range is widened before frames that widen it are
// published, so it always covers the truth and reads may prune by it. Rows and
// bytes are estimates until the shard is closed.
//
// Leases only spare double work. Nothing is unsafe when two processes believe
// they own the same lane or shard: the router's checkpoint and the sink's head
// are compare-and-set, and the loser starts over. A member that missed a beat is
// probed on members.<role>.<member>, a plain subject. NATS reports at once that no process
// answers there. The member's share then moves without waiting for the lease.
//
// A router's lease also says up to which revision it goes by the topics (seen.go). AwaitSeen waits for all of them,
// so that a privacy rule holds when `topics apply` returns.
//
// # Copies
//
// Each entry but leases, jobs, proofs and notes of streams has a second copy in a bucket of its own
// (copies.go). Every write counts (schemas.HeaderCount):
//
//	read copy and entry ─▶ write the entry, count + 1 ─▶ write the copy ─▶ acknowledge
//
// So a copy that was written more often than the entry proves that the bucket lost the entry or is
// an older one. The next writer or reader of the entry puts it back, and so does Reconcile, which
// routers run at their start and a sink now and then. What is forgotten leaves a tombstone in the
// copies: an absence would look like a lost copy.
//
// The ledger has a third copy, in ClickHouse (kept.go). Registry.WithThird reads all three, and the
// one written most often counts, before it is restored anywhere. Behind names the erasures that
// ended and that ClickHouse does not have.
//
// # The ledger
//
// Package internal/registry/ledger says what an erasure is and what it covers; here its entries are
// read and written. Enter refuses an erasure above the ledger's bounds. Readers that ask often
// share a LedgerCache, which may be LedgerStaleness old.
//
// A shard's erasure record has one pending erasure at a time. Begin writes its numbers before a row
// goes, and Book ends it together with the rows of the shard's entry. An erasure record also has the
// mark that keeps erasures and the clearing of anonymised fields apart (clearing.go).
//
// # Failures
//
// The bucket's metadata has the number of the format. Open, Setup and CreateBucket refuse another, schemas.ErrFormat, before they change anything. So they do
// while a backup is being restored into the server, schemas.ErrRestoring: the bucket's metadata name it, and until the bucket is there an empty stream does.
//
// A lost race is ErrConflict: read again. A lost bucket is ErrNoRegistry, and Setup makes it
// again from its copies. Where these are lost too it is ErrLost where SHARDS holds frames: nothing
// is placed until it is rebuilt. ErrBehind: a topic that is not shown yet, since a copy from before
// an erasure was restored. A crash between entry and copy leaves the copy behind until the next
// write or Reconcile. Every call ends with its context.
package registry
