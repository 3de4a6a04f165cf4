// Command compare sends the same events through Almanac and through what people
// use today, on one machine and into one ClickHouse, in turn:
//
//   - an OpenTelemetry Collector, OTLP in and its ClickHouse exporter out;
//   - a consumer written by hand: JSON messages in JetStream, read in batches and
//     appended row by row with clickhouse-go.
//
// Each is timed from the first event until the last row can be selected. What
// each keeps when the power fails is said beside its rate: they do not promise
// the same. run.sh builds what is needed and runs it. This is a module of its own,
// so that Almanac does not depend on the Collector.
package main
