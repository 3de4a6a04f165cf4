package router

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Router routes the lanes that are its share.
type Router struct {
	cfg     Config
	outages *streams.Outages
	js      jetstream.JetStream
	events  jetstream.Stream
	shards  jetstream.Stream
	members *registry.Members
	group   *group
	entries queue // of writes to the registry
	pace    pace
	copies  *copies
	reading readings
	// lookedAt is when Run last looked for retired shards.
	lookedAt time.Time
}

// New prepares a router on a connection where registry.Setup has run.
func New(ctx context.Context, nc *nats.Conn, cfg Config) (*Router, error) {
	cfg = cfg.withDefaults()
	if cfg.Registry == nil {
		return nil, errors.New("router: Config.Registry is missing")
	}
	r := &Router{cfg: cfg, outages: streams.NewOutages(nc), entries: make(queue, maxEntries), pace: pace{origin: time.Now()}, copies: newCopies()}
	var err error
	if r.js, err = jetstream.New(nc); err != nil {
		return nil, err
	}
	if r.events, err = streams.Open(ctx, r.js, schemas.StreamEvents); err != nil {
		return nil, fmt.Errorf("router: stream %s: %w", schemas.StreamEvents, err)
	}
	if r.shards, err = streams.Open(ctx, r.js, schemas.StreamShards); err != nil {
		return nil, fmt.Errorf("router: stream %s: %w", schemas.StreamShards, err)
	}
	r.group = newGroup(r.js, &r.cfg)
	return r, nil
}

// Run routes until ctx ends. Faults of a lane end and restart that lane only.
func (r *Router) Run(ctx context.Context) error {
	r.members = r.cfg.Registry.Join(ctx, schemas.RoleRouter)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer r.keepLast(ctx)
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = r.members.Run(ctx) })
	wg.Go(func() { r.outages.Follow(ctx) })
	r.group.bound = func() (context.Context, context.CancelFunc) { return r.outages.Bound(ctx) }
	wg.Go(func() { r.sweepUnroutable(ctx) })
	wg.Go(func() { r.sweepForeign(ctx) })
	wg.Go(func() { r.keepCopies(ctx) })
	topics := make(chan struct{}, 1)
	wg.Go(func() { r.cfg.Registry.FollowTopics(ctx, topics) })

	lanes := map[laneID]*running{}
	tick := time.NewTicker(r.cfg.Discover)
	defer tick.Stop()
	for {
		wanted, rev, err := r.wanted(ctx)
		if err != nil {
			r.cfg.Hooks.fault("", "", err)
		} else {
			retired, err := r.retired(ctx, wanted)
			if err != nil {
				r.cfg.Hooks.fault("", "", err)
			}
			for id, l := range lanes {
				if l.stops(wanted[id], retired[id]) {
					l.stop()
					delete(lanes, id)
				}
			}
			for id, topic := range wanted {
				if _, ok := lanes[id]; !ok {
					laneCtx, stop := context.WithCancel(ctx)
					l := &running{topic: topic, stop: stop}
					lanes[id] = l
					r.reading.hold(l, rev)
					wg.Go(func() {
						r.work(laneCtx, id, l)
						r.reading.end(l)
					})
				}
			}
			for _, l := range lanes { // with the topic as it is now
				r.reading.hold(l, rev)
			}
			r.members.Saw(r.reading.oldest(rev))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-topics:
		case <-r.members.Changed():
		}
	}
}

// laneID is a topic and a lane as they stand in subjects.
type laneID struct{ topic, lane string }

// running is a lane at work, and the topic it was started with.
type running struct {
	topic   *schemas.Topic
	stop    context.CancelFunc
	started atomic.Bool // its run has sealed what it found, and routes
}

// stops reports whether the lane ends: it is another's now (wanted is nil), its topic
// changed, or it has a retired shard. The last starts again, for that is when such are
// sealed. One that is still starting does so now: where NATS is slower than the looks for
// retired shards it would start again and again, and route nothing.
func (l *running) stops(wanted *schemas.Topic, retired bool) bool {
	return wanted == nil || !reflect.DeepEqual(wanted, l.topic) || retired && l.started.Load()
}

// wanted are the lanes that are this router's, and the revision of the registry up to which that is so.
func (r *Router) wanted(ctx context.Context) (map[laneID]*schemas.Topic, uint64, error) {
	ctx, end := r.outages.Bound(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	rev, err := r.cfg.Registry.Revision(ctx) // before: what is read may be newer
	if err != nil {
		return nil, 0, err
	}
	topics, err := r.cfg.Registry.Topics(ctx)
	if err != nil {
		return nil, 0, err
	}
	lanes := map[laneID]*schemas.Topic{}
	for i := range topics {
		t := &topics[i]
		for n := range t.Lanes {
			if id := (laneID{t.Name, strconv.Itoa(n)}); r.members.Owns(id.topic + "." + id.lane) {
				lanes[id] = t
			}
		}
	}
	return lanes, rev, nil
}

// retired are the wanted lanes that have a shard to seal which retention left, or a sink because
// it forked: read from the head entries. A rotation seals its own, so
// that one under way is met here now and then, and its lane starts again once.
func (r *Router) retired(ctx context.Context, wanted map[laneID]*schemas.Topic) (map[laneID]bool, error) {
	if time.Since(r.lookedAt) < retiredEvery*r.cfg.Discover {
		return nil, nil
	}
	r.lookedAt = time.Now()
	ctx, end := r.outages.Bound(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	topics := map[string]bool{}
	for id := range wanted {
		topics[id.topic] = true
	}
	lanes := map[laneID]bool{}
	for name := range topics {
		heads, err := r.cfg.Registry.Heads(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			for _, lane := range h.Retired {
				lanes[laneID{name, strconv.Itoa(lane)}] = true
			}
		}
	}
	return lanes, nil
}

// lookTime bounds one look at the registry: what Asked may wait for an election.
const lookTime = 10 * time.Second

// retiredEvery is how many rounds of Discover pass between two looks for retired
// shards, which nothing waits for.
const retiredEvery = 5

// maxEntries bounds its writes to the registry at once: 256 lanes that all began
// together waited longer for their first shards than a client has patience, and those
// of one topic lost races for its one entry to each other.
const maxEntries = 4

// work runs a lane again and again until ctx ends, pausing after a fault.
func (r *Router) work(ctx context.Context, id laneID, at *running) {
	topic := at.topic
	pause, cfg := backoff.Backoff{Least: minPause, Most: maxPause}, r.cfg
	for ctx.Err() == nil {
		began := time.Now()
		l := &lane{
			cfg: &cfg, js: r.js, shards: r.shards, self: r.members.Self(), group: r.group, entries: r.entries, pace: &r.pace, copies: r.copies,
			source: laneSource(topic, topic.Front(), id.lane), active: map[schemas.Month]*shardState{},
			started: &at.started,
		}
		l.evaluator.topic, l.evaluator.key = topic, r.cfg.PrivacyKey
		run, end := r.outages.Bound(ctx)
		err := l.run(run)
		if lost := context.Cause(run); lost != nil {
			err = errors.Join(lost, err)
		}
		end()
		at.started.Store(false)
		if ctx.Err() != nil {
			return
		}
		r.cfg.Hooks.fault(id.topic, id.lane, err)
		if errors.Is(err, ErrShardsFull) {
			cfg.MaxBatchMessages = max(1, cfg.MaxBatchMessages/2)
		} else {
			cfg.MaxBatchMessages = r.cfg.MaxBatchMessages
		}
		if time.Since(began) > maxPause {
			pause.Reset()
		}
		_ = pause.Wait(ctx) // the loop asks ctx; two routers that fight over a lane part ways by its jitter
	}
}

// Pauses after a fault: from one that a lost race needs to one that a server's
// restart takes.
const (
	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
)
