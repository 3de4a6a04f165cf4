package recent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// follower is what an index of many reads has besides: it goes by snapshots and heads
// that are some seconds old, and reads ahead of queries.
type follower struct {
	// ahead is the index on the second connection: a NATS server answers a connection's
	// direct reads one after the other, so those that wait for a batch of SHARDS would
	// hold up the reads of EVENTS. What it learns is the first one's.
	ahead  *Index
	wants  chan *tailer // of EVENTS, of topics to be read ahead
	topics atomic.Int32 // that are read ahead now
}

// maxWanted bounds the topics that wait to be read ahead; those beyond are read by their
// own queries.
const maxWanted = 64

const (
	// aheadPause is between two readings ahead of queries, which go on for
	// snapshotAge after one. So little has come since that a query's own read is short.
	// Of several topics each waits so much longer, up to headsAge.
	aheadPause = 100 * time.Millisecond
	// headsAge is how old a head may get before it is asked for ahead of queries: a
	// third of what they go by. Such a statement costs ClickHouse some milliseconds.
	headsAge = snapshotAge / 3
	// aheadTimeout bounds one reading.
	aheadTimeout = 5 * time.Second
)

// wanted is what a read went by, for which those to come are read ahead.
type wanted struct {
	topic  string
	r      Range
	months []schemas.Month
	asked  time.Time
}

// Follow leaves the snapshot to the reads that come after it, and has it and what they need
// besides read again for a while, so that all of it is there when they ask. months are
// those whose shards the read began with.
func (s *Snapshot) Follow(r Range, months []schemas.Month) {
	if s.x.follower == nil {
		return
	}
	f := s.x.cache.tailer(schemas.StreamEvents, s.topic)
	if c := f.snapshot.Load(); c == nil || c.read.Before(s.read) {
		f.snapshot.CompareAndSwap(c, &s.checkpoints)
	}
	f.wanted.Store(&wanted{s.topic, r, months, time.Now()})
	if !f.ahead.CompareAndSwap(false, true) {
		return
	}
	select {
	case s.x.follower.wants <- f:
	default:
		f.ahead.Store(false)
	}
}

// stayAhead reads ahead what the last query of a topic wanted, until none came for
// snapshotAge.
func (x *Index) stayAhead(ctx context.Context, f *tailer) {
	topics := &x.follower.topics
	topics.Add(1)
	defer topics.Add(-1)
	defer f.ahead.Store(false)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for w := f.wanted.Load(); time.Since(w.asked) < snapshotAge; w = f.wanted.Load() {
		// At first too: many a reader asks but once.
		timer.Reset(min(time.Duration(topics.Load())*aheadPause, headsAge))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		reading, cancel := context.WithTimeout(ctx, aheadTimeout)
		c, err := x.follower.ahead.readAhead(reading, w)
		cancel()
		if err != nil {
			return // a query reads it, and says what is wrong
		}
		f.snapshot.Store(c)
	}
}

// readAhead reads checkpoints, then both streams, the registry's months and heads.
func (x *Index) readAhead(ctx context.Context, w *wanted) (*checkpoints, error) {
	c, err := x.checkpoints(ctx, w.topic)
	if err != nil {
		return nil, err
	}
	for _, stream := range []string{schemas.StreamShards, schemas.StreamEvents} {
		if err := x.cache.tailer(stream, w.topic).follow(ctx, x); err != nil {
			return nil, err
		}
	}
	s := &Snapshot{*c, x, w.topic, c.read}
	for _, m := range w.months {
		if _, err := s.shards(ctx, m, w.r, headsAge); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// errMoreThanAhead: more is there than is read ahead, or no query read before.
var errMoreThanAhead = errors.New("too much to read ahead")

// maxFollowed bounds what follow reads: more is left to a query that needs it.
const maxFollowed = 4 * recentFrames

// follow is advance for queries to come.
func (f *tailer) follow(ctx context.Context, x *Index) error {
	if err := f.hold(ctx); err != nil {
		return err
	}
	from, generation, read := f.next, f.generation, 0
	idle := time.Since(f.begun) > idleAfter
	f.release()
	if from == 0 || idle {
		return errMoreThanAhead
	}
	return f.readFrom(ctx, x, from, generation, recentFrames, aheadBytes, func() error {
		if read++; read > maxFollowed {
			return errMoreThanAhead
		}
		return nil
	})
}
