// Package derived has the statements over the tables that are filled from a topic's rows: fill, read, drop and erase.
//
// # Model
//
// A topic may have three such tables, each with a partition a shard: repeats (which rows must not count), sums (of a
// meter's diffs) and series (of a metric's points). Each says up to which position it stands for its shard. State reads
// what there is and compares it with the rows; ExamineAll, FillSums and FillSeries add; Drop takes away what no
// longer fits. Package rollups decides when.
//
// # Failures
//
// A statement asserts in ClickHouse that its shard still stands where its caller read it: tables.ErrHeadMoved. Only the
// table's own position tells what is stored. A drop waits for the statements that began before it.
package derived
