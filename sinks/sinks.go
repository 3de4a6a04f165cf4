package sinks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Sinks stores the shards that are its share.
type Sinks struct {
	cfg      Config
	js       jetstream.JetStream
	shards   jetstream.Stream
	members  *registry.Members
	joined   atomic.Pointer[registry.Members] // members, for other goroutines than Run's
	outages  *streams.Outages
	schedule map[schemas.Shard]*state // the loop's
	budget   uint64                   // rows of tasks that may still begin; the loop's
	hints    surveyed                 // as last surveyed; the loop's
	watch    int                      // of the last notice; the loop's

	ledger *registry.LedgerCache

	fresh    *fresh                // how long each topic's shards linger
	hurried  map[string]time.Time  // topics, when a reader last said that it waits; the loop's
	limiter  *limiter              // of inserts
	unmerged chan schemas.ShardRef // closed shards to be merged

	views views // that ClickHouse refused

	mu     sync.Mutex
	topics map[string]readyTable // whose tables are ready
}

// New prepares sinks on a connection where registry.Setup has run.
func New(ctx context.Context, nc *nats.Conn, cfg Config) (*Sinks, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.DB.MeantFor(cfg.Registry)
	cfg.Registry = cfg.Registry.WithThird(cfg.DB)
	s := &Sinks{cfg: cfg, ledger: registry.NewLedgerCache(cfg.Registry), schedule: map[schemas.Shard]*state{}, topics: map[string]readyTable{}, outages: streams.NewOutages(nc), unmerged: make(chan schemas.ShardRef, mergeAhead)}
	s.budget = tasksPerInsert * uint64(cfg.Inserts) * cfg.BatchRows
	s.limiter = newLimiter(&s.cfg)
	s.fresh, s.hurried = newFresh(s.cfg.Linger), map[string]time.Time{}
	var err error
	if s.js, err = jetstream.New(nc); err != nil {
		return nil, err
	}
	if s.shards, err = streams.Open(ctx, s.js, schemas.StreamShards); err != nil {
		return nil, fmt.Errorf("sinks: stream %s: %w", schemas.StreamShards, err)
	}
	return s, nil
}

// Run stores until ctx ends; an insert under way is finished or left to be found
// by the next start, which is the same to ClickHouse.
func (s *Sinks) Run(ctx context.Context) error {
	s.members = s.cfg.Registry.Join(ctx, schemas.RoleSink)
	s.joined.Store(s.members)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = s.members.Run(ctx) })
	wg.Go(func() { s.outages.Follow(ctx) })
	wg.Go(func() { s.housekeep(ctx) })
	wg.Go(func() { s.merge(ctx) })
	wg.Go(func() { s.followTopics(ctx) })
	heads := make(chan surveyed)
	survey := make(chan struct{}, 1)
	wg.Go(func() { s.survey(ctx, survey, heads) })

	notices := make(chan notice, watchAhead)
	wg.Go(func() { s.follow(ctx, notices) })
	waiting, err := listen(s.js.Conn())
	if err != nil {
		return err
	}
	defer waiting.stop()
	outcomes := make(chan outcome, tasksPerInsert*s.cfg.Inserts*smallestShare)
	pending := map[schemas.Shard]*state{} // behind, and this sink's
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(s.begin(ctx, &wg, pending, outcomes))
		select {
		case <-ctx.Done():
			return nil
		case n := <-notices:
			s.take(n, pending)
			for range len(notices) { // what else has come, before looking at the clock again
				s.take(<-notices, pending)
			}
			if s.watch > 1 && s.watch != s.hints.watch { // shards may be open that were not there at the last survey
				s.hints.watch = s.watch
				select {
				case survey <- struct{}{}:
				default: // one is asked for already
				}
			}
		case o := <-outcomes:
			s.stored(o, pending)
		case topic := <-waiting.topics:
			s.hurry(topic, time.Now())
		case <-s.members.Changed():
			s.reshare(pending)
			select {
			case survey <- struct{}{}:
			default: // one is asked for already
			}
		case got := <-heads:
			s.hints = surveyed{got.heads, got.open, s.hints.watch}
			for id, st := range s.schedule {
				st.open = s.hints.open[id]
				if (st.wentBack(s.hints.heads[id], time.Now()) || st.doubtful() && !st.working) && s.members.Owns(id.String()) {
					pending[id] = st
				}
			}
			for id, st := range pending {
				if st.hinted(s.hints.heads[id]); !st.behind() {
					delete(pending, id)
				}
			}
		case <-timer.C:
		}
	}
}

// Owns reports whether a piece of work that one sink of all does is this one's. It is not
// before Run.
func (s *Sinks) Owns(work string) bool {
	m := s.joined.Load()
	return m != nil && m.Owns(work)
}

// reshare looks at every shard again after a sink came or went.
func (s *Sinks) reshare(pending map[schemas.Shard]*state) {
	clear(pending)
	for id, st := range s.schedule {
		if st.working {
			continue
		}
		// Another sink may have moved the head.
		st.headKnown, st.counted, st.next, st.prev = false, false, 0, ""
		if st.since.IsZero() {
			st.since = time.Now()
		}
		if s.members.Owns(id.String()) {
			pending[id] = st
		}
	}
}

// take puts a notice into the schedule.
func (s *Sinks) take(n notice, pending map[schemas.Shard]*state) {
	st := s.schedule[n.ref.ID]
	if st == nil {
		st = &state{ref: n.ref}
		s.schedule[n.ref.ID] = st
	}
	s.watch = max(s.watch, n.watch)
	st.linger, st.hurried = s.fresh.linger(n.ref.Topic), s.hurried[n.ref.Topic]
	st.watched(n.watch, n.tail)
	st.noticed(n.tail, n.seq, time.Now())
	st.open = s.hints.open[n.ref.ID]
	st.hinted(s.hints.heads[n.ref.ID])
	if !s.members.Owns(n.ref.ID.String()) {
		st.headKnown = false
	} else if st.behind() {
		pending[n.ref.ID] = st
	}
}

// stored puts the outcome of an insert into the schedule.
func (s *Sinks) stored(o outcome, pending map[schemas.Shard]*state) {
	st := s.schedule[o.id]
	s.budget += st.weight
	if o.gone {
		delete(pending, o.id)
		delete(s.schedule, o.id)
		return
	}
	st.stored(o, time.Now())
	if o.err != nil && !o.outage {
		s.cfg.Hooks.fault(st.ref, o.err)
	}
	if !st.behind() || !s.members.Owns(o.id.String()) {
		delete(pending, o.id)
	} else {
		pending[o.id] = st
	}
}

// tasksPerInsert is how many shards are at work for each insert at once: while
// one is being inserted, another's frames are fetched.
const tasksPerInsert = 2

// smallestShare is how many small inserts count as a full one: they wait for the
// disk and not for a processor, so more of them go at once.
const smallestShare = 8

// weight is what work on up to so many rows and bytes counts, in rows.
func (c *Config) weight(rows, bytes uint64) uint64 {
	byBytes := uint64(float64(c.BatchRows) * min(1, float64(bytes)/float64(c.BatchBytes)))
	return min(c.BatchRows, max(rows, byBytes, c.BatchRows/smallestShare, 1))
}

// begin starts work on the shards that are due, while there is budget, and
// returns how long until the next is.
func (s *Sinks) begin(ctx context.Context, wg *sync.WaitGroup, pending map[schemas.Shard]*state, outcomes chan<- outcome) time.Duration {
	for {
		st, at := nextDue(pending, &s.cfg)
		if st == nil {
			break
		}
		if wait := time.Until(at); wait > 0 {
			return wait
		}
		// The head's rows are 0 while they are not known: then this is the most.
		weight := s.cfg.weight(st.tail.rows-st.head.rows, st.tail.bytes-st.head.bytes)
		if weight > s.budget {
			break // an outcome comes first
		}
		st.working, st.weight, st.beganAt = true, weight, time.Now()
		s.budget -= weight
		t := task{ref: st.ref, tail: st.tail.pos, tailSeq: st.tailSeq, head: st.head, absent: st.absent, headKnown: st.headKnown && !st.doubtful(), next: st.next, prev: st.prev, doubtful: st.doubtful(), watch: st.watch}
		wg.Go(func() {
			o := s.work(ctx, t)
			o.gone = o.err != nil && !o.outage && s.gone(ctx, t.ref)
			outcomes <- o
		})
	}
	return time.Hour // an outcome or a notice comes first
}

// follow keeps the watcher running. A new one begins with the last frame of
// every shard, so nothing is missed between two.
func (s *Sinks) follow(ctx context.Context, notices chan<- notice) {
	for count := 1; ctx.Err() == nil; count++ {
		watching, end := s.outages.Bound(ctx)
		err := watch(watching, s.js, count, notices, func(err error) { s.cfg.Hooks.fault(schemas.ShardRef{}, err) })
		lost := context.Cause(watching)
		end()
		if ctx.Err() != nil {
			return
		}
		s.cfg.Hooks.fault(schemas.ShardRef{}, errors.Join(lost, err))
		_ = backoff.Sleep(ctx, minPause) // the loop asks ctx
	}
}

// survey finds out which ClickHouse answers, makes the tables of all topics, so that SQL finds them before the first
// event, and reads all heads at once: at the start, whenever it is asked, when a table lost
// rows, and when ClickHouse restarted, for it may have been restored from an older copy.
func (s *Sinks) survey(ctx context.Context, ask <-chan struct{}, heads chan<- surveyed) {
	var e engine
	var had sizes
	for pause := (backoff.Backoff{Least: minPause, Most: maxPause}); ctx.Err() == nil; {
		asking, end := s.outages.Bound(ctx)
		var all surveyed
		err := s.cfg.DB.Establish(asking)
		if err == nil {
			if up, err := s.cfg.DB.Uptime(asking); err == nil { // before the heads are read
				e.restarted(up, time.Now())
			}
			had, _ = s.cfg.DB.TopicRows(asking) // before them too; what is not known did not shrink
			all, err = s.allHeads(asking)
		}
		end()
		if err != nil {
			if tables.Classify(err) == tables.Unreachable && s.cfg.DB.Returned(ctx, err) {
				continue
			}
			if ctx.Err() == nil {
				s.cfg.Hooks.fault(schemas.ShardRef{}, err)
			}
			_ = pause.Wait(ctx) // the loop asks ctx
			continue
		}
		pause.Reset()
		select {
		case heads <- all:
		case <-ctx.Done():
		}
		for again := false; !again; {
			select {
			case <-ask:
				again = true
			case <-ctx.Done():
				return
			case <-s.cfg.DB.Doubted():
				again = true // an engine that took a lost one's place has other heads
			case <-time.After(max(s.cfg.Housekeeping, lookEvery)):
				up, err := s.cfg.DB.Uptime(ctx)
				again = err != nil || e.restarted(up, time.Now()) // what does not answer is asked until it does
				if now, err := s.cfg.DB.TopicRows(ctx); err == nil {
					again = again || had.shrank(now)
					had = now
				}
			}
		}
	}
}

// surveyed is what a survey found: the heads, and which shards are active.
type surveyed struct {
	heads map[schemas.Shard]uint64
	open  map[schemas.Shard]bool
	watch int // of SHARDS, for which it was asked; the loop's
}

func (s *Sinks) allHeads(ctx context.Context) (surveyed, error) {
	topics, err := s.cfg.Registry.Topics(ctx)
	if err != nil {
		return surveyed{}, err
	}
	all := surveyed{heads: map[schemas.Shard]uint64{}}
	if all.open, err = s.cfg.Registry.Open(ctx, topics); err != nil {
		return surveyed{}, err
	}
	s.fresh.heard(topics)
	for i := range topics {
		if _, _, err := s.table(ctx, topics[i].Name, topics[i].Version); err != nil {
			return surveyed{}, err
		}
		heads, err := s.cfg.DB.Heads(ctx, topics[i].Name)
		if err != nil {
			return surveyed{}, err
		}
		maps.Copy(all.heads, heads)
	}
	return all, nil
}
