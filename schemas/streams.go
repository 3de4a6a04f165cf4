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
	// DocsBytes and TimersBytes bound the fronts; 0 takes their share of ShardsBytes.
	DocsBytes   int64
	TimersBytes int64
	Replicas    int
	// Said are the streams whose bounds the operator gave. Those hold for a stream that exists, too.
	Said SaidBounds
}

// SaidBounds are the streams whose bounds the operator gave.
type SaidBounds struct{ Events, Shards, Docs, Timers bool }

// Of reports whether a stream is one of them.
func (s SaidBounds) Of(stream string) bool {
	switch stream {
	case StreamEvents:
		return s.Events
	case StreamShards:
		return s.Shards
	case StreamDocs:
		return s.Docs
	case StreamTimers:
		return s.Timers
	}
	return false
}

// DefaultStreamLimits suit a laptop with room: an hour of full load in EVENTS,
// a replay window in SHARDS, and a registry of two million shards at about 400
// bytes each.
var DefaultStreamLimits = StreamLimits{EventsBytes: 8 << 30, ShardsBytes: 32 << 30, RegistryBytes: 1 << 30, Replicas: 1}

// StreamLimitsFor are the default limits, made to fit a server that may store
// storeBytes: a fifth for EVENTS, three fifths for SHARDS, a tenth for DOCS, and a
// fiftieth each for TIMERS, the registry and its copies. A server refuses a stream whose bound it
// could not honour.
func StreamLimitsFor(storeBytes int64) StreamLimits {
	l := DefaultStreamLimits
	l.EventsBytes = min(l.EventsBytes, storeBytes/5)
	l.ShardsBytes = min(l.ShardsBytes, storeBytes/5*3)
	l.RegistryBytes = min(l.RegistryBytes, storeBytes/50)
	l.DocsBytes = max(minFrontBytes, min(maxDocsBytes, storeBytes/10))
	l.TimersBytes = max(minFrontBytes, min(maxTimersBytes, storeBytes/50))
	return l
}

// Bounds of the fronts. Each key costs them some 300 bytes while it lives, and its
// body as long as it is hot.
const (
	maxDocsBytes   = 8 << 30
	maxTimersBytes = 2 << 30
	// minFrontBytes holds a few of the largest records.
	minFrontBytes = 8 << 20
)

// FrontBytes returns the bounds of DOCS and TIMERS. Where they are not given they are a
// sixth and a thirtieth of SHARDS, as StreamLimitsFor shares a store out.
func (l StreamLimits) FrontBytes() (docs, timers int64) {
	docs = cmp.Or(l.DocsBytes, max(minFrontBytes, min(maxDocsBytes, l.ShardsBytes/6)))
	timers = cmp.Or(l.TimersBytes, max(minFrontBytes, min(maxTimersBytes, l.ShardsBytes/30)))
	return docs, timers
}

// Bytes is what all streams and both buckets may hold together.
func (l StreamLimits) Bytes() int64 {
	docs, timers := l.FrontBytes()
	return l.EventsBytes + l.ShardsBytes + 2*l.RegistryBytes + docs + timers
}

// With returns the limits with bounds of EVENTS and SHARDS in place of its own, where they
// are not 0. The fronts follow SHARDS. Where both are given, they say how large the operator's store is, and the registry gets its share of that.
func (l StreamLimits) With(eventsBytes, shardsBytes int64) StreamLimits {
	l.EventsBytes, l.ShardsBytes = cmp.Or(eventsBytes, l.EventsBytes), cmp.Or(shardsBytes, l.ShardsBytes)
	if shardsBytes > 0 {
		l.DocsBytes, l.TimersBytes = 0, 0
	}
	if eventsBytes > 0 && shardsBytes > 0 {
		l.RegistryBytes = min(l.RegistryBytes, max(minRegistryBytes, (eventsBytes+shardsBytes)/40))
	}
	l.Said.Events, l.Said.Shards = eventsBytes > 0, shardsBytes > 0
	return l
}

// WithFronts returns the limits with bounds of DOCS and TIMERS in place of its own, where they are not 0.
func (l StreamLimits) WithFronts(docsBytes, timersBytes int64) StreamLimits {
	l.DocsBytes, l.TimersBytes = cmp.Or(docsBytes, l.DocsBytes), cmp.Or(timersBytes, l.TimersBytes)
	l.Said.Docs, l.Said.Timers = docsBytes > 0, timersBytes > 0
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

// ShardsStream is where the router publishes: frames, checkpoints, dead letters and the
// parts of keyed requests that lanes were given, which share a stream because an atomic batch belongs to one.
func ShardsStream(l StreamLimits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               StreamShards,
		Description:        "Almanac: routed frames, checkpoints, dead letters and parts of keyed requests",
		Subjects:           []string{SubjectsShards, SubjectsRouted, SubjectsDead, SubjectsGiven},
		Storage:            jetstream.FileStorage,
		Discard:            jetstream.DiscardNew,
		MaxBytes:           l.ShardsBytes,
		Replicas:           l.Replicas,
		AllowDirect:        true,
		AllowAtomicPublish: true,
	}
}

// DocsStream is the front of documents: the last message of a subject is the present
// record of one document. It has no limit of messages per subject: a newer version
// would remove one that is not routed yet.
func DocsStream(l StreamLimits) jetstream.StreamConfig {
	docs, _ := l.FrontBytes()
	return front(StreamDocs, "Almanac: documents, hot copies and stubs, and their locks", docs, l.Replicas, SubjectsDocs, SubjectsDocLocks)
}

// TimersStream is the front of timers: the last message of a subject is the present
// record of one timer.
func TimersStream(l StreamLimits) jetstream.StreamConfig {
	_, timers := l.FrontBytes()
	return front(StreamTimers, "Almanac: timers that are pending, firing or not archived yet", timers, l.Replicas, SubjectsTimers)
}

func front(name, description string, bytes int64, replicas int, subjects ...string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               name,
		Description:        description,
		Subjects:           subjects,
		Storage:            jetstream.FileStorage,
		Discard:            jetstream.DiscardNew,
		MaxBytes:           bytes,
		Replicas:           replicas,
		MaxMsgSize:         MaxMessageBytes,
		AllowDirect:        true,
		AllowAtomicPublish: true,
		AllowRollup:        true,
		AllowMsgTTL:        true,
	}
}

// Streams are all streams of Almanac but the registry's two buckets.
func Streams(l StreamLimits) []jetstream.StreamConfig {
	return []jetstream.StreamConfig{EventsStream(l), ShardsStream(l), DocsStream(l), TimersStream(l)}
}

// RegistryBucket is the registry's KV bucket; package internal/registry lists its keys.
func RegistryBucket(l StreamLimits) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket:      Bucket,
		Description: "Almanac: who may write where",
		History:     1,
		Storage:     jetstream.FileStorage,
		Replicas:    l.Replicas,
		MaxBytes:    l.RegistryBytes,
		Metadata:    FormatMetadata(),
	}
}

// CopiesBucket is the KV bucket with the second copy of those entries of the registry that have one (Copied). It lies in files
// of its own, has a bound of its own, and is as large as what it copies.
func CopiesBucket(l StreamLimits) jetstream.KeyValueConfig {
	c := RegistryBucket(l)
	c.Bucket, c.Description = BucketCopies, "Almanac: the second copy of the registry"
	return c
}
