// Package billing publishes what was billed for a month of a topic of kind meter into a topic
// of kind log, once, and later what of it has moved.
//
// # Model
//
//	<meter topic> ── report of the month ──▶ bills by key ──▶ buckets ──▶ frames ──▶ <log topic>
//
// A bill is for a key: a space, a customer, a provider or a meter. Its first revision is the
// bill, each later one a correction with old and new numbers. Revisions of a key count from 0.
//
// A round is one publication: round 0 closes the month, and each run of corrections that finds
// something is one more. A round has a number of buckets, and the digest of a key says its
// bucket. A bucket is one frame, also when no bill is in it: it begins with an event that names
// round and bucket. A round is complete when each of its buckets is there.
//
// # Why once
//
// The frame of a bucket has a producer and a sequence that are made of topic, month, round and
// bucket. JetStream and the router take it once, whichever process sends it, in whatever state a killed
// run left it, and whatever its bills say by then. So of each bucket one attempt is stored, and
// of each key one bill in a round. The router remembers 64 sequences of a producer: each
// producer sends no more. An attempt leaves out the buckets that it finds.
//
// # Who is authoritative
//
// The log topic is: what is published there was billed. A run begins by reading it, events on
// their way included. The registry holds the number of buckets of the round under way and
// whether the month was closed, by compare-and-set (a job). A registry that lost it costs
// nothing while one bucket is there.
//
// What a bill stands on are the positions up to which each shard was read. They are published
// before the bills that name them. The causes of a correction are the diffs that count and are
// stored above.
//
// # Failures
//
// A run that is killed anywhere is finished by the same call. Diffs that come between two
// attempts are in the buckets of the second, and corrections name what of them is not. Two runs
// at once publish the same round; each bucket is of one of them. A month that has not ended, a
// target that is not a log, and a target that lost bills of a month that was closed are refused.
package billing
