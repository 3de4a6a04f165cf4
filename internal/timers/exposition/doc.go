// Package exposition says the numbers of timers in the text format of Prometheus.
//
// # Model
//
// A snapshot becomes families of metrics by a pure function: Front of what the front TIMERS holds, Dispatcher of
// what one dispatcher waits for and has called. A Source reads a snapshot and makes families of it. Handler
// serves those of some sources.
//
//	almanac_timers_*      of each group, from the front. Every gateway says the same.
//	almanac_dispatcher_*  of one dispatcher: its lanes, its calls. The sum over dispatchers is the whole.
//
// # Bounds
//
// A family has at most MaxGroups groups, by name; the others are one, OtherGroup. A snapshot passes over every
// timer, so Paced reads one at a time, and not again for twenty times as long as that took. While a read takes more
// than a moment, the page has what was read last.
//
// # Failures
//
// The metrics of a source that cannot be read are missing, so that nothing looks like zero, and
// almanac_metrics_source_failed names it. It is read again soon. Where no source can be read, the answer is 503 and
// the scrape fails.
package exposition
