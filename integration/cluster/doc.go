// Package cluster runs Almanac on three NATS servers that elect, each a process of its own, and kills and freezes those that
// lead, while events flow. The harness, its checker and its seeds are those of integration/faults.
//
// `make test` has the short form: the leaders of SHARDS and of EVENTS are killed once each, and one that leads is frozen.
// `make cluster` has 25 of each.
package cluster
