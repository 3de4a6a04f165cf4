// Package faults breaks Almanac on purpose and counts what is left. It runs every part as a process of its own on
// loopback, kills, stops, cuts, slows, fills and damages them from one printed seed, lets everything heal, and then asks
// an independent checker whether what producers were told is stored is in ClickHouse: each event once.
//
// # Model
//
//	Cluster   one Almanac: a NATS server, a ClickHouse engine, routers, sinks, producers; each a Part
//	Part     a process: started, killed (-9), stopped (SIGSTOP), continued, started again
//	Proxy    a link between parts that can be cut, delayed, throttled, swallowed, or cut after so many bytes
//	Journal  what a producer was told, fsynced by the producer's own process: the oracle
//	Schedule the order of the faults, from a seed; Report what came of them, as Markdown
//	Checker  SQL over HTTP, headers of SHARDS and the journals; it shares no code with the pipeline
//
// The parts are this very test binary, started again with a role (PartEnv), so that they are built as the tests are, with
// the race detector when that is on.
//
// # The oracle
//
// A producer reserves numbers in its journal before it uses them, and writes down a number as stored once it was told so.
// Every event carries its number as its message. So for each number exactly one of these holds:
//
//	told stored      must be in ClickHouse once
//	reserved only    its outcome is unknown: at most once
//	never reserved   must not be there
//
// # Seeds
//
// Every test prints its seed; ALMANAC_FAULT_SEED repeats it. The schedule of the faults is the same again; what the
// operating system makes of it is not.
//
// MATRIX.md lists the failure matrix, row by row, with the test of each.
package faults
