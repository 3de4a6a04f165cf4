package query

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// follower is what a reader of many queries has besides: it goes by snapshots and heads
// that are some seconds old, and reads ahead of queries.
type follower struct {
	// ahead is the reader on the second connection: a NATS server answers a connection's
	// direct reads one after the other, so those that wait for a batch of SHARDS would
	// hold up the reads of EVENTS. What it learns is the first one's.
	ahead  *Reader
	wants  chan *feed   // of EVENTS, of topics to be read ahead
	topics atomic.Int32 // that are read ahead now
}

// maxWanted bounds the topics that wait to be read ahead; those beyond are read by their
// own queries.
const maxWanted = 64

// NewFollowing prepares a reader for a process that serves many queries. It keeps what is
// not stored yet at hand from one query to the next. While Run runs, it reads ahead over
// a second connection, which must not be nc. Close releases what it holds; both
// connections stay the caller's.
func NewFollowing(nc, second *nats.Conn, reg *registry.Registry, db *tables.DB) (*Reader, error) {
	r, err := New(nc, reg, db)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(second)
	if err != nil {
		return nil, err
	}
	r.follower = &follower{wants: make(chan *feed, maxWanted)}
	r.follower.ahead = &Reader{js: js, reg: reg, db: db, ledger: r.ledger, dir: r.dir, known: r.known, heads: r.heads, follower: r.follower}
	return r, nil
}

// Run reads ahead of queries, for topics that were asked about in the last seconds, until
// ctx ends. Without it queries read all they need themselves. A reader by New has nothing
// to run: Run waits for ctx.
func (r *Reader) Run(ctx context.Context) error {
	if r.follower == nil {
		<-ctx.Done()
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(directoryIdle)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			r.dir.tidy(now)
		case f := <-r.follower.wants:
			wg.Go(func() { r.stayAhead(ctx, f) })
		}
	}
}

// Close releases what the reader holds. Queries under way go on, and read again what they
// need.
func (r *Reader) Close() { r.dir.forget() }

// wanted is what a query went by, for which those to come are read ahead.
type wanted struct {
	plan   plan
	months []schemas.Month
	asked  time.Time
}

// readOnAhead leaves the snapshot of a query to those that follow, and has it and what
// they need besides read again for a while, so that all of it is there when they ask.
func (r *Reader) readOnAhead(p *plan, months []schemas.Month) {
	if r.follower == nil {
		return
	}
	f := r.dir.feed(schemas.StreamEvents, p.topic.Name)
	if s := f.standing.Load(); s == nil || s.read.Before(p.standing.read) {
		f.standing.CompareAndSwap(s, p.standing)
	}
	f.wanted.Store(&wanted{*p, months, time.Now()})
	if !f.ahead.CompareAndSwap(false, true) {
		return
	}
	select {
	case r.follower.wants <- f:
	default:
		f.ahead.Store(false)
	}
}

// stayAhead reads ahead what the last query of a topic wanted, until none came for
// standingAge.
func (r *Reader) stayAhead(ctx context.Context, f *feed) {
	topics := &r.follower.topics
	topics.Add(1)
	defer topics.Add(-1)
	defer f.ahead.Store(false)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for w := f.wanted.Load(); time.Since(w.asked) < standingAge; w = f.wanted.Load() {
		// At first too: many a reader asks but once.
		timer.Reset(min(time.Duration(topics.Load())*standingPause, headsAge))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		reading, cancel := context.WithTimeout(ctx, aheadTimeout)
		s, err := r.follower.ahead.readAhead(reading, w.plan, w.months)
		cancel()
		if err != nil {
			return // a query reads it, and says what is wrong
		}
		f.standing.Store(s)
	}
}

// readAhead reads a snapshot, then the registry's months, heads and both streams.
func (r *Reader) readAhead(ctx context.Context, p plan, months []schemas.Month) (s *standing, err error) {
	if p.standing, err = r.stand(ctx, p.topic.Name); err != nil {
		return nil, err
	}
	for _, stream := range []string{schemas.StreamShards, schemas.StreamEvents} {
		if err := r.dir.feed(stream, p.topic.Name).follow(ctx, r); err != nil {
			return nil, err
		}
	}
	p.ahead = true
	for _, m := range months {
		if _, err := r.parts(ctx, &p, m); err != nil {
			return nil, err
		}
	}
	return p.standing, nil
}
