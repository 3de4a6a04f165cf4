// Package seals makes seals over the closed shards of topics whose kind has them, and checks
// them.
//
// # Model
//
// A seal has a digest over all rows of a shard and the hash of the topic's seal before it. So
// the newest hash of a topic stands for every row that its seals are over.
//
//	shard closes ─▶ digest over its rows ─▶ seal n, chained to n−1 ─▶ the registry
//	rows change for a reason ─▶ seal m, which replaces n and says why
//
// The reasons are an erasure that was booked, fields that were anonymised, and retention. A
// shard whose rows changed for no such reason keeps its seal, and Check names it. An erasure
// compares the rows with the seal before it takes any; the seal that follows says when they
// differed, and Check names that.
//
// # States of a shard
//
//	open            no seal
//	closed          gets a seal in the next round
//	being erased, or cleared    left as it is until that is booked
//	dropped         a last seal, of no rows, if it had one before
//
// # Who is authoritative
//
// The rows. A seal is evidence of what they were. It is evidence against an operator only where
// its hash was kept outside of this Almanac: who can write rows can write seals too.
//
// # Failures
//
// A seal is added by compare-and-set at the end of the chain, so two processes cannot both add
// one. The entry, the erasure record and the rows are read before and after: a shard that changes
// meanwhile is left for the next round. A shard whose rows are not as many as its entry says is
// reported and not sealed. A registry that was lost lost its seals too: Check says so.
package seals
