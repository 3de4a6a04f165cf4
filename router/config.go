package router

import (
	"time"

	"github.com/almanac-events/almanac/internal/registry"
)

// Config is what a router needs. Only Registry is required.
type Config struct {
	Registry *registry.Registry
	// MaxBatchMessages is when an atomic batch is full, a lane's and a group's. Default 500: JetStream
	// takes 1,000, and the last message to go in may be NDJSON of a megabyte,
	// which becomes 200 frames and dead letters at the most.
	MaxBatchMessages int
	// MaxBatchBytes bounds their payload. Default 16 MiB: an eighth of the
	// stream's ingest queue, which eight lanes may so fill at once.
	MaxBatchBytes int
	// Linger is the least time between two batches of a lane, but for full ones and
	// those of 2 MiB; it is three times as long after a small one, up to 0.3 s when they
	// take long, and up to a second when many lanes are busy. All lanes of the router keep
	// to one beat, so that they commit together. Default 100 ms; negative: none. A reader
	// does not wait for it: it reads EVENTS above the checkpoint.
	Linger time.Duration
	// CommitTimeout bounds the wait for an atomic batch's answer. Default: streams.BatchWait.
	CommitTimeout time.Duration
	// Discover is how often new topics and stray subjects are looked for.
	// Default 2 s.
	Discover time.Duration
	// CopyEvery is how often checkpoints that changed are copied to the registry. Default
	// 1 s: what both streams lose of less than that before is not named.
	CopyEvery time.Duration
	// PrivacyKey is the key of topics' hash rules, for bare JSON and for frames that are older than
	// a rule. Without one, what should be hashed is dropped.
	PrivacyKey []byte
	Hooks      Hooks
	// Crash is called at the named points where tests kill the process.
	Crash CrashFunc
}

func (c Config) withDefaults() Config {
	if c.MaxBatchMessages == 0 {
		c.MaxBatchMessages = 500
	}
	if c.MaxBatchBytes == 0 {
		c.MaxBatchBytes = 16 << 20
	}
	if c.Linger == 0 {
		c.Linger = 100 * time.Millisecond
	}
	if c.CopyEvery == 0 {
		c.CopyEvery = time.Second
	}
	if c.Discover == 0 {
		c.Discover = 2 * time.Second
	}
	return c
}

// Hooks tell what happens; each may be nil. They are called from the lanes'
// goroutines and must not block.
type Hooks struct {
	// Routed: a batch of messages was committed.
	Routed func(topic, lane string, b Batch)
	// Dead: events were kept as dead letters.
	Dead func(topic, reason string, events int, err error)
	// Rotated: a shard was full.
	Rotated func(s registry.Shard, reason string)
	// Committed: a batch was published, for so many lanes, or refused.
	Committed func(lanes, messages int, err error)
	// Fault: a lane's run ended and will begin again; topic is empty for the
	// router's own.
	Fault func(topic, lane string, err error)
}

// Batch is what a lane committed at once.
type Batch struct {
	Messages, Bytes int
	// Events got a place in a shard; Repeated had come before.
	Events, Repeated uint64
}

func (h *Hooks) routed(topic, lane string, b Batch) {
	if h.Routed != nil {
		h.Routed(topic, lane, b)
	}
}

func (h *Hooks) dead(topic, reason string, events int, err error) {
	if h.Dead != nil {
		h.Dead(topic, reason, events, err)
	}
}

func (h *Hooks) rotated(s registry.Shard, reason string) {
	if h.Rotated != nil {
		h.Rotated(s, reason)
	}
}

func (h *Hooks) committed(lanes, messages int, err error) {
	if h.Committed != nil {
		h.Committed(lanes, messages, err)
	}
}

func (h *Hooks) fault(topic, lane string, err error) {
	if h.Fault != nil {
		h.Fault(topic, lane, err)
	}
}

// CrashFunc is told the name of each point a crash is tested at.
type CrashFunc func(point string)

func (f CrashFunc) at(point string) {
	if f != nil {
		f(point)
	}
}
