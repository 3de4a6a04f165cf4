// Package model plays Almanac's protocol against every fault it is made for, ten
// thousand times in a minute. Servers and processes are simulated; one seed
// decides what happens; the clock is a number.
//
//	make simulate SEEDS=1000000
//	go test ./integration/model -run TestModel -seed 4711 -lines 500 -v
//	go test ./integration/model -run TestModel -mutant 'no fence before sealing'
//
// # What is modelled
//
//		producer ─▶ EVENTS ─▶ router ─▶ SHARDS, registry ─▶ sink ─▶ table ─▶ reader
//
//	  - EVENTS: Msg-Ids in memory on the server's clock, which restarts and outages
//	    eat; refusal when full. SHARDS: atomic batches with expectations. The
//	    registry: compare-and-set of several keys (stream_test.go, registry_test.go).
//	  - ClickHouse: an insert is planned, which evaluates its assertion, and
//	    finished later, which checks the deadline, logs the token and makes the part.
//	    A crash between the last two burns the token. The log is first in, first out
//	    (table_test.go).
//	  - Producers, with windows of schemas.MaxInFlight; several routers for each
//	    lane, which commit it alone or together with their other lanes; sinks for
//	    every shard, a janitor and readers (producer_test.go, router_test.go, group_test.go, sink_test.go,
//	    janitor_test.go, reader_test.go). Each follows its original step by step. What is pure
//	    there is used here (checkpoint.Windows, tables.Insert.Token,
//	    registry.Shard.Overlaps), or stated again and compared with it by a test
//	    beside the original (Window, Full, Follows).
//	  - Faults (faults_test.go): every request may be lost, late, brought twice or left
//	    without an answer; a process or server may die at each; processes stall and
//	    go on with what they knew; clocks jump; streams fill; operators change the
//	    rotation; a frame is damaged, or the last of a shard; EVENTS or SHARDS loses its
//	    end and gives its sequences again (cut_test.go, shardscut_test.go); of an answer only a
//	    part arrives.
//
// A process is a coroutine that stops whenever it asks a server something. The
// scheduler (world_test.go) picks who goes on, and carries requests (wire_test.go). After
// the chaos everything is healed and must come to rest; then the oracle
// (oracle_test.go), which uses nothing that the pipeline computed, compares what
// producers were told with what is there:
//
//   - an accepted frame is stored once, or kept as a dead letter once; one that was
//     not accepted, at most once (a duplicate that comes so late that the router
//     cannot tell is kept as a dead letter beside it, and named stale-seq);
//   - positions have no gaps, each names its predecessor, none stands above a
//     sealed position; rows are as many as the headers say, and carry their frame's position;
//   - the registry's ranges cover, and a closed shard's numbers are exact;
//   - a reader sees what was accepted before it began, and whatever any reader
//     saw before;
//   - a damaged shard stops and its gap is named;
//   - of what was in EVENTS when that was cut, only frames that were not routed are lost;
//   - of what SHARDS lost with its end, what EVENTS still holds is routed again, to the
//     positions it had where it is stored, or waits there for a repair of its lane.
//
// # What is not modelled
//
// Bytes: a frame is its headers and a number, checksums never fail. What a repair does
// but for a lane's checkpoint after a cut of EVENTS; a loss of both streams; a cut of
// SHARDS that leaves a lane only its very first checkpoint, when EVENTS was purged, or of a
// shard only purged frames; restore of ClickHouse, loss of power
// between write and fsync: those are damage, and integration/faults plays them on real servers. Bare JSON; erasure
// and floors, which model/positions plays; schema versions; leases, beyond that one router is told to work a
// lane while others still may; more producers in a lane than schemas.MaxWindows.
//
// # What the protocol stands on
//
// TestMutants breaks each guard in turn and expects to be told. Grounds, in
// mutants_test.go, are the same for what is not ours: that ClickHouse shows no token
// before its part, that its log outlasts tables.InsertDeadline and keeps a burnt
// token while its head stands, that its clock does not step back; and that what is
// sealed, placed and read is answered by the stream's leader, which with one
// replica it always is.
package model
