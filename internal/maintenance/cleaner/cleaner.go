package cleaner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/fronts/archived"
	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what a cleaner needs. Registry and DB are required.
type Config struct {
	Registry *registry.Registry
	DB       *tables.DB
	// MinAge is how long every record stays in its front at least. It must be above the
	// time that a write takes (fronts.Config.Timeout).
	MinAge time.Duration
	// MayTake is asked before something leaves a front: its error ends the round. nil: it may.
	MayTake func(ctx context.Context) error
	// Crash is called at the named points where tests kill the process, at those of stubs also by
	// two goroutines at once; nil: nothing.
	Crash func(point string)
}

// Cleaner takes out of the fronts what is stored. It is not safe for concurrent use; two
// cleaners are.
type Cleaner struct {
	cfg   Config
	js    jetstream.JetStream
	lanes map[laneID]*progresses

	mu      sync.Mutex
	writers map[string]*fronts.Writer // by stream
}

type laneID struct {
	topic string
	lane  int
}

// progresses are how far a lane was walked. They are a hint: without them the walk begins at
// the front again.
type progresses struct {
	began      time.Time
	cold, warm progress
	held       map[string]bool // subjects of which something is not stored
}

// progress is how far one way along a lane was walked, and what ended it there. For a look at a lane
// NATS matches each of its subjects, so a walk that can find nothing does not begin.
type progress struct {
	at uint64 // the walk goes on above it
	// next is the message that ended the walk, stored then; or where the next one can be at the
	// earliest. 0: it is not known.
	next   uint64
	stored time.Time
}

// mayWait reports whether a walk would end where it begins.
func (m *progress) mayWait(w *walk) bool {
	return m.next > w.upTo || m.next > 0 && w.now.Sub(m.stored) < w.age
}

const (
	// again is how long marks count. After it the walk begins at the front: a million
	// stubs take 6 s.
	again = time.Hour
	// pressed is how full a front is when records leave as soon as they are settled.
	pressed = 0.8
	// maxHeld bounds the subjects that are remembered because something of them is not
	// stored. With more, the lane waits.
	maxHeld = 10_000
)

// Done counts what a round did.
type Done struct {
	Stubbed, Refreshed, Purged int
	// Lost are writes that were refused because the key changed meanwhile.
	Lost int
	// Held are keys that stay because a row of theirs is not there.
	Held int
}

func (d *Done) add(o Done) {
	d.Stubbed, d.Refreshed, d.Purged, d.Lost, d.Held = d.Stubbed+o.Stubbed, d.Refreshed+o.Refreshed, d.Purged+o.Purged, d.Lost+o.Lost, d.Held+o.Held
}

// New makes a cleaner.
func New(cfg Config) *Cleaner {
	if cfg.Crash == nil {
		cfg.Crash = func(string) {}
	}
	if cfg.MayTake == nil {
		cfg.MayTake = func(context.Context) error { return nil }
	}
	return &Cleaner{cfg: cfg, js: cfg.Registry.JetStream(), writers: map[string]*fronts.Writer{}, lanes: map[laneID]*progresses{}}
}

// Round takes out once what may leave, of every topic whose kind has a front. now is the
// time: it must not be ahead of the NATS server's.
func (c *Cleaner) Round(ctx context.Context, now time.Time) (Done, error) {
	var all Done
	topics, err := c.cfg.Registry.Topics(ctx)
	if err != nil {
		return all, err
	}
	var failed []error
	for i := range topics {
		t := &topics[i]
		if k := records.Of(t); k != nil {
			done, err := c.topic(ctx, t, k, now)
			all.add(done)
			failed = append(failed, err)
		}
	}
	return all, errors.Join(failed...)
}

func (c *Cleaner) topic(ctx context.Context, t *schemas.Topic, k *records.Kind, now time.Time) (Done, error) {
	var all Done
	info, err := streams.Info(ctx, c.js, t.Front())
	if err != nil {
		return all, fmt.Errorf("cleaner: %w", err)
	}
	s, err := archived.Take(ctx, c.js, c.cfg.Registry, c.cfg.DB, t)
	if err != nil {
		return all, fmt.Errorf("cleaner: %w", err)
	}
	upTo, err := s.UpTo(ctx, c.js)
	if err != nil {
		return all, fmt.Errorf("cleaner: %w", err)
	}
	hot := k.HotFor(t)
	if limit := info.Config.MaxBytes; limit > 0 && float64(info.State.Bytes) > pressed*float64(limit) {
		hot = 0
	}
	hot = max(hot, c.cfg.MinAge)
	var failed []error
	for lane := range t.Lanes {
		done, err := c.lane(ctx, &walk{topic: t, kind: k, lane: lane, end: info.State.LastSeq, upTo: upTo[lane], dropped: s.Dropped(), now: now}, hot)
		all.add(done)
		failed = append(failed, err)
	}
	return all, errors.Join(failed...)
}

// lane walks a lane twice: to what is no longer hot, and above that to what is settled,
// of which only the versions leave that have a newer one.
func (c *Cleaner) lane(ctx context.Context, w *walk, hot time.Duration) (Done, error) {
	id := laneID{w.topic.Name, w.lane}
	at := c.lanes[id]
	if at == nil || w.now.Sub(at.began) > again {
		at = &progresses{began: w.now, held: map[string]bool{}}
		c.lanes[id] = at
	}
	w.held, w.age, w.cold = at.held, hot, true
	all, err := c.walk(ctx, w, &at.cold)
	if err != nil || hot <= c.cfg.MinAge {
		return all, err
	}
	w.age, w.cold = c.cfg.MinAge, false
	if at.warm.at < at.cold.at {
		at.warm = progress{at: at.cold.at}
	}
	more, err := c.walk(ctx, w, &at.warm)
	all.add(more)
	return all, err
}

// writer is the cleaner's writer of a front. Its writes go one by one where a batch was
// refused.
func (c *Cleaner) writer(ctx context.Context, stream string) (*fronts.Writer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.writers[stream]; w != nil {
		return w, nil
	}
	w, err := fronts.Open(ctx, c.js, stream, fronts.Config{Single: -1})
	if err == nil {
		c.writers[stream] = w
	}
	return w, err
}
