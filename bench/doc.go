// Package bench measures Almanac against its ceiling, in one run on one machine.
//
// The pipeline is the real one: producers in this process, JetStream with fsync,
// router, sinks, ClickHouse. It is timed from the first Log until the last row
// can be selected. The ceiling is ClickHouse taking the same frames, encoded
// before the clock starts, by the same statement and as many inserts at once as
// the sinks use, with nothing else running. Their ratio is what a change can be
// judged by: both halves meet the same machine.
//
// CPU by part comes from a sampled profile: every goroutine carries the label of
// the part that started it, and ClickHouse is another process, whose CPU the
// kernel counts.
package bench
