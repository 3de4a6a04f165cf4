// Package cluster runs Almanac on three NATS servers that elect, each a process of its own. It kills and freezes those that
// lead, while events flow. The harness, its checker and its seeds are those of integration/faults.
//
// `make test` has the short form. The leaders of SHARDS and of EVENTS are killed once each, and one is frozen.
// `make cluster` has 25 of each.
package cluster
