package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Role is the role of dispatchers among the registry's members.
const Role = schemas.RoleTimers

// Caller makes the call of a claimed attempt. An error means that the call has no outcome, because ctx ended.
type Caller interface {
	Call(ctx context.Context, g *timer.Group, r *timer.Record, s *timer.Spec) (timer.Outcome, timer.Call, error)
}

// Config of a Dispatcher.
type Config struct {
	Registry *registry.Registry
	Caller   Caller
	// Calls bounds the calls at once, default timer.Calls; PerHost those to one host and port, default timer.CallsPerHost.
	Calls, PerHost int
	// Discover is how often topics and groups are read: 1 s.
	Discover time.Duration
	Hooks    Hooks
	// Crash is called at the points of doc.go, by tests.
	Crash func(point string)
}

// Hooks report what happens. Each may be nil.
type Hooks struct {
	// Ended: an attempt, or a timer that was too late, ended.
	Ended func(r *timer.Record)
	// Fault: a lane ends and begins again, or a write is tried again.
	Fault func(topic string, lane int, err error)
}

// Dispatcher calls the timers of the lanes that are its share.
type Dispatcher struct {
	cfg     Config
	js      jetstream.JetStream
	w       *fronts.Writer
	clock   streams.Clock
	limits  *limits
	groups  *groups
	flights *flights
	members *registry.Members
	stats   stats
}

// Defaults and bounds.
const (
	defaultDiscover = time.Second
	// drain is how long calls may go on once the dispatcher is told to end.
	drain = 5 * time.Second
	// answerWait is how long NATS may take for a first answer: a timer whose claim or read got lost is late
	// by this, and not by the 5 s that NATS may be silent elsewhere. Each further wait is twice as long, so
	// that a slow server gets its time.
	answerWait = time.Second
	// takeAtOnce bounds the records that are read at once.
	takeAtOnce = 500
	// claimWait is how long a claim of a live member is left alone: the longest call, and the time to
	// write its outcome.
	claimWait = timer.MaxTimeout + 15*time.Second
)

// New prepares a dispatcher on a connection where registry.Setup has run.
func New(ctx context.Context, nc *nats.Conn, cfg Config) (*Dispatcher, error) {
	if cfg.Registry == nil || cfg.Caller == nil {
		return nil, errors.New("dispatch: Config.Registry or Config.Caller is missing")
	}
	for _, d := range []struct {
		to  *int
		def int
	}{{&cfg.Calls, timer.Calls}, {&cfg.PerHost, timer.CallsPerHost}} {
		if *d.to <= 0 {
			*d.to = d.def
		}
	}
	if cfg.Discover <= 0 {
		cfg.Discover = defaultDiscover
	}
	if cfg.Crash == nil {
		cfg.Crash = func(string) {}
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	w, err := fronts.Open(ctx, js, schemas.StreamTimers, fronts.Config{Answer: answerWait})
	if err != nil {
		return nil, err
	}
	return &Dispatcher{
		cfg: cfg, js: js, w: w, limits: newLimits(cfg.Calls, cfg.PerHost),
		groups: &groups{}, flights: &flights{live: map[string]bool{}},
	}, nil
}

type laneID struct {
	topic  string
	number int
	first  int // Topic.First
}

// running is a lane at work.
type running struct {
	*lane
	stop context.CancelFunc
}

// Run calls what is due until ctx ends. It then claims no more, and waits for the calls under way for drain. What
// it gives up after that stays firing and is called by another dispatcher.
func (d *Dispatcher) Run(ctx context.Context) error {
	d.members = d.cfg.Registry.Join(ctx, Role)
	calls, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	var wg, alive sync.WaitGroup
	defer alive.Wait()
	defer giveUp() // a member stays one until its calls have ended
	alive.Go(func() { _ = d.members.Run(calls) })
	defer func() {
		timer := time.AfterFunc(drain, giveUp)
		defer timer.Stop()
		wg.Wait()
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { d.clock.Follow(ctx, streams.TimeOf(d.js, schemas.StreamTimers)) })

	topics := make(chan struct{}, 1)
	wg.Go(func() { d.cfg.Registry.FollowTopics(ctx, topics) })

	lanes := map[laneID]running{}
	tick := time.NewTicker(d.cfg.Discover)
	defer tick.Stop()
	for {
		wanted, err := d.wanted(ctx)
		if err != nil && ctx.Err() == nil {
			d.fault("", 0, err)
		}
		if err == nil {
			for id, l := range lanes {
				if n, ok := wanted[id]; !ok || n != l.of {
					l.stop()
					delete(lanes, id)
				}
			}
			for id, of := range wanted {
				if _, ok := lanes[id]; !ok {
					laneCtx, stop := context.WithCancel(ctx)
					l := newLane(d, id, of)
					lanes[id] = running{l, stop}
					wg.Go(func() { d.work(laneCtx, calls, &wg, l) })
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-topics:
		case <-d.members.Changed():
		}
		for _, l := range lanes {
			l.nudge()
		}
	}
}

// wanted are the lanes that are this dispatcher's, with how many lanes their topic has. It reads the groups
// of their topics.
func (d *Dispatcher) wanted(ctx context.Context) (map[laneID]int, error) {
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	rev, err := d.cfg.Registry.Revision(ctx) // before: what is read may be newer
	if err != nil {
		return nil, err
	}
	topics, err := d.cfg.Registry.Topics(ctx)
	if err != nil {
		return nil, err
	}
	lanes := map[laneID]int{}
	for i := range topics {
		t := &topics[i]
		if t.Kind != kinds.Timer {
			continue
		}
		gs, err := d.cfg.Registry.TimerGroups(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		d.groups.set(t.Name, gs)
		for n := range t.Lanes {
			if d.members.Owns(Role + "." + t.Name + "." + strconv.Itoa(n)) {
				lanes[laneID{t.Name, n, t.First}] = t.Lanes
			}
		}
	}
	d.members.Saw(rev)
	return lanes, nil
}

const discoverTimeout = 5 * time.Second

// work runs a lane again and again until its context ends. Attempts belong to all: they outlive the lane.
func (d *Dispatcher) work(ctx, all context.Context, wg *sync.WaitGroup, l *lane) {
	pause := backoff.Backoff{Least: 50 * time.Millisecond, Most: 2 * time.Second}
	for ctx.Err() == nil {
		began := time.Now()
		err := l.run(ctx, all, wg)
		if ctx.Err() != nil {
			return
		}
		d.fault(l.topic, l.number, err)
		if time.Since(began) > 10*time.Second {
			pause.Reset()
		}
		if pause.Wait(ctx) != nil {
			return
		}
	}
}

func (d *Dispatcher) fault(topic string, lane int, err error) {
	if d.cfg.Hooks.Fault != nil && err != nil {
		d.cfg.Hooks.Fault(topic, lane, err)
	}
}

// put writes the record that follows one with sequence expect.
func (d *Dispatcher) put(ctx context.Context, next *timer.Record, expect uint64) error {
	h, data, err := next.Message()
	if err != nil {
		return err
	}
	next.Seq, err = d.w.Put(ctx, fronts.Record{Subject: next.Key.Subject(), Header: h, Data: data, Expect: expect, For: purposeOf(next)})
	return err
}

// purposeOf says how full a record may make the front. A first attempt and every outcome have what there is; further
// attempts leave room for those.
func purposeOf(next *timer.Record) fronts.Purpose {
	if next.Op == timer.Firing && next.Attempt > 1 {
		return fronts.Change
	}
	return fronts.End
}

// read returns a timer's newest record, with its body; nil where there is none. One whose place a message took that is
// not a record is lost until repair has put it back.
func (d *Dispatcher) read(ctx context.Context, subject string) (*timer.Record, error) {
	r, last, err := fronts.Newest(ctx, d.w, subject, parse)
	if errors.Is(err, fronts.ErrReplaced) {
		return nil, nil
	}
	if r != nil && r.Seq != last {
		r.Last = last
	}
	return r, err
}

func parse(m *streams.Message) (*timer.Record, error) {
	r, err := timer.Parse(m.Subject, m.Sequence, m.Header, m.Data)
	if err != nil {
		return nil, fmt.Errorf("dispatch: message %d on %s: %w", m.Sequence, m.Subject, err)
	}
	return &r, nil
}
