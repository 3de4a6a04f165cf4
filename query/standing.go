package query

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// standing is how far each lane of a topic was routed at some time. It may be old:
// what was routed later is in EVENTS above it, still, and is looked for there. So a
// query needs of EVENTS what came until it began; registry, SHARDS and heads it may
// know from before, as long as they were read after the checkpoints.
type standing struct {
	checkpoints map[string]schemas.Checkpoint
	read        time.Time // when that was done
	epoch       uint64    // the connection's outages, as they were before
}

const (
	// standingAge is how old a standing may be. Frames that were routed or stored since
	// are judged once more, so it is short against the second that sinks gather; and
	// what leaves EVENTS was routed 30 s before, at the very least. It must be shorter
	// than trackLinger and HeadStaleness.
	standingAge = 3 * time.Second
	// standingPause is between two readings ahead of queries, which go on for
	// standingAge after one. So little has come since that a query's own read is short.
	// Of several topics each waits so much longer, up to headsAge.
	standingPause = 100 * time.Millisecond
	// headsAge is how old a head may get before it is asked for ahead of queries: a
	// third of what they go by. Such a statement costs ClickHouse some milliseconds.
	headsAge = standingAge / 3
	// aheadTimeout bounds one reading.
	aheadTimeout = 5 * time.Second
)

// stands is the standing of a topic that a query may go by which begins now; nil for
// none.
func (d *directory) stands(topic string, now time.Time) *standing {
	d.mu.Lock()
	f := d.feeds[place{schemas.StreamEvents, schemas.TopicFilter(topic)}]
	d.mu.Unlock()
	if f == nil {
		return nil
	}
	s := f.standing.Load()
	if s == nil || now.Sub(s.read) > standingAge || s.epoch != d.epoch() {
		return nil
	}
	return s
}

// stand reads a standing.
func (r *Reader) stand(ctx context.Context, topic string) (*standing, error) {
	epoch := r.dir.epoch()
	checkpoints, err := streams.Checkpoints(ctx, r.js, topic)
	if err == nil {
		err = r.fit(ctx, topic, epoch, checkpoints)
	}
	return &standing{checkpoints, time.Now(), epoch}, err
}

// errMoreThanAhead: more is there than is read ahead, or no query read before.
var errMoreThanAhead = errors.New("too much to read ahead")

// maxFollowed bounds what follow reads: more is left to a query that needs it.
const maxFollowed = 4 * freshFrames

// follow is advance for queries to come.
func (f *feed) follow(ctx context.Context, r *Reader) error {
	if err := f.hold(ctx); err != nil {
		return err
	}
	from, generation, read := f.next, f.generation, 0
	idle := time.Since(f.begun) > directoryIdle
	f.release()
	if from == 0 || idle {
		return errMoreThanAhead
	}
	return f.readFrom(ctx, r, from, generation, freshFrames, aheadBytes, func() error {
		if read++; read > maxFollowed {
			return errMoreThanAhead
		}
		return nil
	})
}
