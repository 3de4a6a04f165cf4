// Package removal takes a topic out of Almanac, with all that is of it.
//
// # States
//
//	            Begin                                    Run                              Run
//	declared ──────────▶ entered, descriptor there ──────────▶ entered, descriptor gone ──────────▶ removed
//
// The entry of the registry (registry.Removal) is written first. While it has no end, the topic cannot be declared or changed. Then
// the descriptor goes. From here on no part has the topic. Routers, sinks, dispatchers, cleaners and gateways follow descriptors. A
// producer that starts is refused. The entry stays once all is gone, and names what producers sent too late.
//
// # Who is authoritative
//
// The entry. It says that the topic is to go, up to which sequence each stream is purged, and that it has gone.
//
// # Order
//
//	entry ─▶ descriptor ─▶ routers have seen it ─▶ EVENTS ─▶ the front ─▶ SHARDS ─▶ ClickHouse ─▶ the registry's keys ─▶ look ─▶ entry
//
// Upstream goes first, so that nothing that is there yet is stored again further down. In SHARDS the checkpoints go last. What
// a router still has on its way expects its checkpoint, and is refused. The streams go before the tables, the tables before the shards'
// entries: what is left by a crash has an entry that says whose it is.
//
// The look counts all of these places. What is there again, since a part was slow, goes in the next round, up to the sequences of
// that round. A removal ends when all was empty for QuietTime. An insert that was sent before may be taken as long.
//
// # Crash points
//
//	killed after             leaves                                        then
//	the entry                a topic that works, and cannot be changed     Run goes on
//	the descriptor           data without a topic                          Run goes on
//	a stream, table or key   less of the same                              Run purges and drops again, which does no harm
//	the look                 nothing of the topic                          Run looks again, and ends
//
// verify names a removal that is under way, and nothing of its topic as lost. repair restores nothing of it.
//
// # Two at once
//
// Both take the same things away, and both report that it has gone. A purge takes messages up to the sequence in the entry alone, so a process that was frozen takes
// nothing of a topic that was declared under the name since. A table has no such bound, so each drop goes behind a fence (tables.Fence): a
// table of its own that is made first, then the entry is asked, then one statement drops the fence and the table. A removal ends when it
// has found nothing, so no fence either, and a drop without its fence is refused. An entry of another beginning is another removal's.
//
// # Others at once
//
// An erasure, a rebuild, a replay, a janitor or a billing run that works on the topic ends with an error, which says that the topic was
// removed (registry.IfRemoved), also where all that it sent was acknowledged. What it leaves goes in a later round. The first entry under a key, of an erasure, a group, a seal, a job or a lease, is written together with the topic's descriptor
// as it was read. So a process that was frozen is refused afterwards. Rows of a sink and of a repair say which table they are for, by its UUID: the name's next one refuses them (tables.ErrReplaced). A job and an
// erasure are also refused where the name is another topic's by now: they know which schema version they were made for. Of all shared places only what has the topic's name is touched: its subjects, its keys, its tables.
//
// # What stays
//
// The entry; of each erasure and group a tombstone without content, which keeps older copies from bringing it back; messages that name no lane of the topic,
// which are dead letters of "_"; what was copied into other topics, such as bills; and copies that others have.
//
// # What comes later
//
// A producer of this release that runs since before refuses events once it hears of the removal, at the latest after a minute, and after a
// reconnect before it sends. What other programs send under the name, and what a spool still has, a router takes out of EVENTS and counts
// in the entry, with the producers that sent it: these are not dead letters. The name's next topic goes on counting schema versions
// from the last of this one (schemas.Topic.First), so a router knows late frames by theirs then too, and counts them the same way. Bare
// JSON names no version: it is of the new topic.
//
// A document, a lock or a timer may stand still between its writer's last look and NATS until all has ended. In fronts the name's next topic
// has other subjects (schemas.FrontTopic), so nothing of it is there. A router looks under the subjects of the topics that the entry knows,
// takes out what came, and counts it.
//
// # Copies from before
//
// ClickHouse has a copy of the entry. So a NATS that was restored from a copy from before the removal, and has the topic again, hears
// of it: verify names the topic, as it names one that ClickHouse has again without a descriptor. Run takes it out again, and
// declaring it keeps it. What has a schema version above the removed topic's is of one that was declared since:
// verify names it as lost, and repair restores it.
package removal
