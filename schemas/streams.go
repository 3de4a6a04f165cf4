package schemas

import (
	"github.com/nats-io/nats.go/jetstream"
)

// StreamLimits are the byte bounds of the streams; full means refused
// (DiscardNew), never evicted.
type StreamLimits struct {
	EventsBytes int64
	ShardsBytes int64
	Replicas    int
}

// DefaultStreamLimits suit a laptop: an hour of full load in EVENTS, and a
// replay window in SHARDS.
var DefaultStreamLimits = StreamLimits{EventsBytes: 8 << 30, ShardsBytes: 32 << 30, Replicas: 1}

// EventsStream is where producers publish. Nothing leaves it by age: only the
// janitor purges, and only below the routers' checkpoints.
func EventsStream(l StreamLimits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        StreamEvents,
		Description: "Almanac: events as published, cut by topic, month and lane",
		Subjects:    []string{SubjectsEvents},
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    l.EventsBytes,
		Replicas:    l.Replicas,
		Duplicates:  DedupWindow,
		AllowDirect: true,
		MaxMsgSize:  1 << 20, // the server's max_payload; the router refuses frames above MaxFrameBytes by name
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
		MaxBytes:    1 << 30, // a shard entry is about 400 bytes: two million of them
	}
}
