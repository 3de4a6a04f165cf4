// Package bench measures Almanac: against its ceiling, and every figure that has
// a bar. Ratios come from one run on one machine, so that they can be compared
// between machines and changes. Rates depend on what else the machine does.
//
// # The pipeline and its ceiling
//
// The pipeline is the real one: producers in this process, JetStream with fsync,
// router, sinks, ClickHouse. It is timed from the first Log until the last row
// can be selected (Run, bench.go). The ceiling (ceiling.go) is ClickHouse taking
// the same frames, read from SHARDS into memory before the clock starts, by the same
// statement and as many inserts at once as the sinks use, with nothing else running:
// merges of the pipeline's rows are waited for. CPU by part comes from a sampled profile: every
// goroutine carries the label of the part that started it, and ClickHouse is
// another process, whose CPU the kernel counts (cpu.go, engine.go).
//
// # Figures
//
// A Measure is one file, figure_*.go: it returns a Figure, or a few of one run,
// each with its value, its bar, and how it was measured. A Suite gives it an Environment
// (servers of its own on a fresh directory), the almanac program for what must be
// a process, and a Size. Where two things are compared they take turns, A/B/A/B,
// and medians are taken, so that what the machine does meanwhile meets both.
// Command internal/bench/suite runs them (runs.go); `almanac bench` has the pipeline and the loads.
// Latencies are kept one by one and sorted (quantile.go). Events come on a
// schedule that does not wait for answers (pace.go), so that a stall delays calls
// and does not hide them.
//
// # Growth
//
// growth.go measures what grows with rows, shards, months, topics, lanes and
// producers, fits cost = a · size^b (fit.go), and writes it as a table. Each is
// written as soon as it is measured, beside what other runs left (curve.go).
//
// # Steady loads
//
// Load (load.go) runs an `almanac up` and offers it so many events a second for
// minutes. What each process used is read three times from the kernel and from
// ClickHouse's counters (usage.go). The differences are the costs (loadresult.go).
//
// # Records
//
// A Report is a whole run with its machine (machine.go, no names in it). Falls
// compares its ratios with recorded ones (recorded.go); markdown.go writes the
// tables of bench/README.md. What a figure cannot measure is an error of that figure
// and costs no other.
package bench
