// Package wire tells what Almanac publishes from what others put into its streams.
//
// A message that has the form of Almanac's own is taken for one, also where a client published it: the
// commits are by compare-and-set and positions, and do not rest on this. All else is foreign:
// routers name it as a dead letter, and a purge may take it. Nothing here does I/O.
package wire
