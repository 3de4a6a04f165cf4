package recent

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// Store is ClickHouse, as far as it is asked for heads.
type Store interface {
	// StoredOf returns what it has of shards of a topic; those without rows are missing.
	StoredOf(ctx context.Context, topic string, keys []schemas.ShardRef) (map[schemas.Shard]schemas.Stored, error)
}

// Index finds what is accepted and not stored yet. It is safe for concurrent use.
type Index struct {
	js       jetstream.JetStream
	reg      *registry.Registry
	store    Store
	cache    *recentCache
	known    *registry.ShardCache
	heads    *headCache
	follower *follower // nil: of one verb, which keeps nothing
}

// New prepares an index for one verb: every read asks for all it goes by, keeps nothing for
// the next, and nothing runs in the background. See NewFollowing for a process that serves
// many.
func New(nc *nats.Conn, reg *registry.Registry, store Store) (*Index, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	return &Index{js: js, reg: reg, store: store, cache: newRecentCache(nc), known: registry.NewShardCache(reg), heads: &headCache{}}, nil
}

// once is the index of one read: that of a process that serves many, else a new one, which
// goes with the read.
func (x *Index) once() *Index {
	if x.follower != nil {
		return x
	}
	return &Index{js: x.js, reg: x.reg, store: x.store, cache: newRecentCache(x.cache.nc), known: registry.NewShardCache(x.reg), heads: &headCache{}}
}

// NewFollowing prepares an index for a process that serves many reads. It keeps what is
// not stored yet at hand from one to the next. While Run runs, it reads ahead over
// a second connection, which must not be nc. Close releases what it holds; both
// connections stay the caller's.
func NewFollowing(nc, second *nats.Conn, reg *registry.Registry, store Store) (*Index, error) {
	x, err := New(nc, reg, store)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(second)
	if err != nil {
		return nil, err
	}
	x.follower = &follower{wants: make(chan *tailer, maxWanted)}
	ahead := *x
	ahead.js = js
	x.follower.ahead = &ahead
	return x, nil
}

// Run reads ahead of queries, for topics that were asked about in the last seconds, until
// ctx ends. Without it queries read all they need themselves. One for one verb has
// nothing to run: Run waits for ctx.
func (x *Index) Run(ctx context.Context) error {
	if x.follower == nil {
		<-ctx.Done()
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(idleAfter)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			x.cache.tidy(now)
		case f := <-x.follower.wants:
			wg.Go(func() { x.stayAhead(ctx, f) })
		}
	}
}

// Close releases what the index holds. Queries under way go on, and read again what they
// need.
func (x *Index) Close() { x.cache.forget() }
