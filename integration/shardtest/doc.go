// Package shardtest fills a shard of SHARDS by hand, for tests of what stores and
// removes it.
package shardtest
