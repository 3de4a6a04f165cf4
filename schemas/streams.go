package schemas

import (
	"cmp"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamLimits are the byte bounds of the streams; full means refused
// (DiscardNew), never evicted.
type StreamLimits struct {
	EventsBytes   int64
	ShardsBytes   int64
	RegistryBytes int64
	Replicas      int
}

// DefaultStreamLimits suit a laptop with room: an hour of full load in EVENTS,
// a replay window in SHARDS, and a registry of two million shards at about 400
// bytes each.
var DefaultStreamLimits = StreamLimits{EventsBytes: 8 << 30, ShardsBytes: 32 << 30, RegistryBytes: 1 << 30, Replicas: 1}

// StreamLimitsFor are the default limits, made to fit a server that may store
// storeBytes: a fifth for EVENTS, three fifths for SHARDS, a fiftieth for the
// registry. A server refuses a stream whose bound it could not honour.
func StreamLimitsFor(storeBytes int64) StreamLimits {
	l := DefaultStreamLimits
	l.EventsBytes = min(l.EventsBytes, storeBytes/5)
	l.ShardsBytes = min(l.ShardsBytes, storeBytes/5*3)
	l.RegistryBytes = min(l.RegistryBytes, storeBytes/50)
	return l
}

// With returns the limits with bounds of EVENTS and SHARDS in place of its own, where they
// are not 0. Where both are given, they say how large the operator's store is, and the registry gets its share of that.
func (l StreamLimits) With(eventsBytes, shardsBytes int64) StreamLimits {
	l.EventsBytes, l.ShardsBytes = cmp.Or(eventsBytes, l.EventsBytes), cmp.Or(shardsBytes, l.ShardsBytes)
	if eventsBytes > 0 && shardsBytes > 0 {
		l.RegistryBytes = min(l.RegistryBytes, max(minRegistryBytes, (eventsBytes+shardsBytes)/40))
	}
	return l
}

// minRegistryBytes holds a hundred thousand shards.
const minRegistryBytes = 64 << 20

// EventsStream is where producers publish. Nothing leaves it by age: only the
// janitor purges, and only below the routers' checkpoints.
func EventsStream(l StreamLimits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        StreamEvents,
		Description: "Almanac: events as published, cut by topic, month and lane",
		Subjects:    []string{SubjectsLanes, SubjectsNoLane},
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    l.EventsBytes,
		Replicas:    l.Replicas,
		Duplicates:  DedupWindow,
		AllowDirect: true,
		MaxMsgSize:  MaxMessageBytes,
	}
}

// ShardsStream is where the router publishes: frames, checkpoints and dead
// letters, which share a stream because an atomic batch belongs to one.
func ShardsStream(l StreamLimits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               StreamShards,
		Description:        "Almanac: routed frames, checkpoints and dead letters",
		Subjects:           []string{SubjectsShards, SubjectsRouted, SubjectsDead},
		Storage:            jetstream.FileStorage,
		Discard:            jetstream.DiscardNew,
		MaxBytes:           l.ShardsBytes,
		Replicas:           l.Replicas,
		AllowDirect:        true,
		AllowAtomicPublish: true,
	}
}

// RegistryBucket is the KV bucket of topics, head entries, shard entries and
// leases.
func RegistryBucket(l StreamLimits) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket:      Bucket,
		Description: "Almanac: who may write where",
		History:     1,
		Storage:     jetstream.FileStorage,
		Replicas:    l.Replicas,
		MaxBytes:    l.RegistryBytes,
	}
}
