package recent

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// Bounds of what a reader keeps between queries, all of which it forgets when
// no query comes for a while.
const (
	// MaxFrames bounds the frames above checkpoints and heads that an index knows of, and
	// those that one read can meet: some minutes of a full pipeline, 25 MiB.
	MaxFrames = 1 << 18
	// keptBytes are payloads that came along, the newest: what most pages ask for.
	keptBytes = 16 << 20
	// maxIndexes are open shards of a topic, some 300 bytes each.
	maxIndexes = 4096
	// idleAfter is how long all that stays unused.
	idleAfter = 30 * time.Second
)

// errUntracked: more frames wait than a reader keeps headings of, or the positions
// of a shard do not rise, as they must. Then the headers are read for one query.
var errUntracked = errors.New("these frames cannot be kept track of")

// recentCache is the tailers of a reader, one for each topic and stream. It is safe for
// concurrent use.
type recentCache struct {
	nc         *nats.Conn
	metas      atomic.Int64  // of all frame indexes
	parts      atomic.Int64  // of keyed requests, of all frame indexes
	evaluating chan struct{} // held by who reads parts and judges by them: one lane's, of at most schemas.MaxGiven, at a time
	fits       fits

	mu      sync.Mutex
	tailers map[place]*tailer
	swept   time.Time
	used    time.Time // when a query last asked for a tailer

	keeping sync.Mutex
	queue   []*atomic.Pointer[Frame] // oldest first
	bytes   int
}

func newRecentCache(nc *nats.Conn) *recentCache {
	return &recentCache{nc: nc, tailers: map[place]*tailer{}, evaluating: make(chan struct{}, 1)}
}

// epoch counts the connection's outages. Only after one can a stream have been
// restored from an older copy.
func (d *recentCache) epoch() uint64 { return d.nc.Stats().Reconnects }

// tailer is the one of a topic in a stream, new when there was none.
func (d *recentCache) tailer(stream, topic string) *tailer {
	at := place{stream, schemas.ShardsFilter(topic)}
	if stream == schemas.StreamEvents {
		at.filter = schemas.TopicFilter(topic)
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used = now
	if now.Sub(d.swept) > idleAfter {
		d.sweep(now, false)
	}
	f := d.tailers[at]
	if f == nil {
		f = &tailer{place: at, cache: d, reading: make(chan struct{}, 2), sequence: make(chan struct{}, 1), epoch: d.epoch(), indexes: map[string]*frameIndex{}}
		d.tailers[at] = f
	}
	return f
}

// sweep forgets what was not used for a while, or all that is not in use now.
func (d *recentCache) sweep(now time.Time, all bool) {
	d.swept = now
	for _, f := range d.tailers {
		select {
		case f.sequence <- struct{}{}:
		default:
			continue
		}
		if all || now.Sub(f.begun) > idleAfter {
			f.clear()
		}
		for filter, t := range f.indexes {
			if now.Sub(t.used) > idleAfter {
				t.clear()
				delete(f.indexes, filter)
			}
		}
		f.release()
	}
}

// forget drops everything, for a reader that is no longer used.
func (d *recentCache) forget() {
	d.mu.Lock()
	d.sweep(time.Now(), true)
	d.mu.Unlock()
	d.keeping.Lock()
	for _, k := range d.queue {
		k.Store(nil)
	}
	d.queue, d.bytes = nil, 0
	d.keeping.Unlock()
	d.fits.forget()
}

// tidy forgets what no query used for a while.
func (d *recentCache) tidy(now time.Time) {
	d.mu.Lock()
	idle := now.Sub(d.used) > idleAfter
	if !idle {
		d.sweep(now, false)
	}
	d.mu.Unlock()
	if idle {
		d.forget()
	}
}

// keep holds a frame until keptBytes of newer ones came.
func (d *recentCache) keep(f Frame) *atomic.Pointer[Frame] {
	k := &atomic.Pointer[Frame]{}
	k.Store(&f)
	d.keeping.Lock()
	defer d.keeping.Unlock()
	d.queue = append(d.queue, k)
	for d.bytes += keptSize(&f); d.bytes > keptBytes; d.queue = d.queue[1:] {
		d.bytes -= keptSize(d.queue[0].Load())
		d.queue[0].Store(nil)
	}
	return k
}

// keptSize is what a kept frame takes: its payload lies in the message's buffer,
// behind headers of some 600 bytes.
func keptSize(f *Frame) int { return len(f.Payload) + 1024 }
