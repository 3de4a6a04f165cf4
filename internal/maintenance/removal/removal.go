package removal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config of a removal. Registry and DB are required.
type Config struct {
	Registry *registry.Registry
	DB       *tables.DB
	// QuietTime is how long all must have been empty before a removal ends. Default QuietTime.
	QuietTime time.Duration
	// Seen is how long routers have to let go of the topic. Default SeenWithin.
	Seen time.Duration
	// Step is told of each step as it begins.
	Step func(what string)
	// Crash is called at the points of doc.go, by tests.
	Crash func(point string)
}

const (
	// QuietTime is longer than the 20 s after which an insert that is late is refused.
	QuietTime = 25 * time.Second
	// SeenWithin is how long routers may take to see that a topic is gone.
	SeenWithin = 30 * time.Second
	// maxRounds bounds how often what came again is taken away.
	maxRounds = 20
	// lookEvery is how long a removal waits between two looks while it settles.
	lookEvery = time.Second
)

func (c *Config) defaults() {
	if c.QuietTime == 0 {
		c.QuietTime = QuietTime
	}
	if c.Seen == 0 {
		c.Seen = SeenWithin
	}
	if c.Step == nil {
		c.Step = func(string) {}
	}
	if c.Crash == nil {
		c.Crash = func(string) {}
	}
}

// Run removes a topic, or goes on with a removal that was killed. It returns the entry as it ended.
func Run(ctx context.Context, cfg Config, topic string) (registry.Removal, error) {
	cfg.defaults()
	if err := streams.MayTake(ctx, cfg.Registry.JetStream()); err != nil {
		return registry.Removal{}, fmt.Errorf("removal: %w", err)
	}
	d, err := cfg.Registry.BeginRemoval(ctx, topic, time.Now())
	if err != nil {
		return d, err
	}
	cfg.Crash("entered")
	rev, err := cfg.Registry.ForgetTopic(ctx, topic)
	if errors.Is(err, registry.ErrConflict) {
		return cfg.Registry.Removal(ctx, topic)
	}
	if err != nil {
		return d, err
	}
	cfg.Crash("forgotten")
	cfg.Step("waiting for routers to let go of the topic")
	behind, err := cfg.Registry.AwaitSeen(ctx, schemas.RoleRouter, rev, cfg.Seen)
	if err != nil {
		return d, err
	}
	if len(behind) > 0 {
		names := make([]string, len(behind))
		for i := range behind {
			names[i] = behind[i].String()
		}
		return d, fmt.Errorf("%w: %s, %s after its descriptor went; end them, then run `almanac topics rm %s` again", ErrSlow, strings.Join(names, ", "), cfg.Seen, topic)
	}
	r := &run{Config: cfg, topic: topic, began: d.Began}
	for range maxRounds {
		if err := r.takeAll(ctx); errors.Is(err, errEnded) {
			return r.entry, nil
		} else if err != nil {
			return d, err
		}
		cfg.Step("looking whether anything comes again")
		left, err := r.quiet(ctx)
		if err != nil {
			return d, err
		}
		if left.Nothing() {
			cfg.Crash("looked")
			d, err := r.end(ctx)
			return d, errors.Join(err, r.remember(ctx))
		}
	}
	return d, fmt.Errorf("%w: a program goes on writing under %q; end it, then run `almanac topics rm %s` again", ErrBack, topic, topic)
}

// run is one Run.
type run struct {
	Config
	topic string
	began time.Time
	entry registry.Removal
}

// takeAll takes away all that is there now.
func (r *run) takeAll(ctx context.Context) error {
	left, err := Look(ctx, r.Config, r.topic)
	if err != nil {
		return err
	}
	if err := r.fence(ctx, left); err != nil {
		return err
	}
	js := r.Registry.JetStream()
	firsts, err := firstsOf(ctx, r.Registry, r.topic)
	if err != nil {
		return err
	}
	for _, p := range places(r.topic, firsts) {
		r.Step("purging " + p.stream)
		s, err := streams.Open(ctx, js, p.stream)
		if err != nil {
			return fmt.Errorf("removal: stream %s: %w", p.stream, err)
		}
		for _, filter := range p.filters {
			if err := streams.PurgeWith(ctx, js, s, filter, streams.Refuse, jetstream.WithPurgeSequence(r.entry.UpTo[p.stream]+1)); err != nil {
				return fmt.Errorf("removal: %w", err)
			}
			r.Crash("purged")
		}
	}
	for _, name := range left.Tables {
		r.Step("dropping " + name)
		if err := r.drop(ctx, name); err != nil {
			return err
		}
		r.Crash("dropped")
	}
	r.Step("taking out the entries of the registry")
	remembered, err := r.Registry.ForgetKeys(ctx, r.topic, r.entry.UpTo)
	if err != nil {
		return err
	}
	r.Crash("entries")
	return r.clearLedger(ctx, remembered)
}

// fence notes in the entry up to where the streams are purged, and counts what goes.
func (r *run) fence(ctx context.Context, left *Left) (err error) {
	upTo := map[string]uint64{}
	for _, stream := range []string{schemas.StreamEvents, schemas.StreamDocs, schemas.StreamTimers, schemas.StreamShards, schemas.KVStream, schemas.CopiesStream} {
		if upTo[stream], err = streams.LastSeq(ctx, r.Registry.JetStream(), stream); err != nil {
			return fmt.Errorf("removal: %w", err)
		}
	}
	r.entry, err = r.Registry.AmendRemoval(ctx, r.topic, func(d *registry.Removal) bool {
		if !r.same(d) {
			return false
		}
		d.UpTo = upTo
		if d.Took == nil {
			d.Took = map[string]uint64{}
		}
		for stream, n := range left.Messages {
			d.Took[stream] = max(d.Took[stream], n)
		}
		d.Took["rows"], d.Took["tables"], d.Took["entries"] = max(d.Took["rows"], left.Rows), max(d.Took["tables"], uint64(len(left.Tables))), max(d.Took["entries"], left.Entries)
		return true
	})
	return r.check(err)
}

// drop drops a table of the topic, behind a fence that was there when the entry was asked: the removal cannot have ended before the
// fence is gone, and without it nothing is dropped. What another process dropped meanwhile, or this one could not, is in the next look.
func (r *run) drop(ctx context.Context, name string) error {
	f, err := r.DB.Fence(ctx, r.topic)
	if err != nil {
		return fmt.Errorf("removal: %w", err)
	}
	if err := r.live(ctx); err != nil {
		return errors.Join(err, f.Open(ctx))
	}
	r.Crash("asked")
	if err := f.Drop(ctx, name); err != nil {
		return fmt.Errorf("removal: %w", err)
	}
	return nil
}

// live asks whether the removal is still under way.
func (r *run) live(ctx context.Context) (err error) {
	r.entry, err = r.Registry.Removal(ctx, r.topic)
	return r.check(err)
}

func (r *run) check(err error) error {
	if err == nil && !r.same(&r.entry) {
		return errEnded
	}
	return err
}

// same reports whether an entry is of this removal, and under way: the name may have been declared and be removed again meanwhile.
func (r *run) same(d *registry.Removal) bool { return d.Ended == nil && d.Began.Equal(r.began) }

// clearLedger takes the topic's erasures and groups out of ClickHouse's copy of the ledger: a tombstone stays.
func (r *run) clearLedger(ctx context.Context, remembered map[string]uint64) error {
	has, err := r.DB.HasLedger(ctx)
	if err != nil || !has {
		return err
	}
	if err := r.remember(ctx); err != nil {
		return err
	}
	there, err := r.DB.ReadLedger(ctx)
	if err != nil {
		return fmt.Errorf("removal: %w", err)
	}
	remembered[schemas.TopicKey(r.topic)] = there[schemas.TopicKey(r.topic)].Count
	for key, count := range remembered {
		if k, in := there[key]; in && k.Count <= count && len(k.Value) == 0 {
			if err := r.DB.ClearLedger(ctx, key, k.Count); err != nil {
				return fmt.Errorf("removal: %w", err)
			}
		}
	}
	return nil
}

// remember copies the entry into ClickHouse, so that a NATS which is restored from an older copy hears of it.
func (r *run) remember(ctx context.Context) error {
	has, err := r.DB.HasLedger(ctx)
	if err == nil && has {
		_, err = erasure.Adopt(ctx, r.Registry, r.DB)
	}
	if err != nil {
		return fmt.Errorf("removal: %w", err)
	}
	return nil
}

// quiet waits until nothing was there for QuietTime, and returns what came meanwhile.
func (r *run) quiet(ctx context.Context) (*Left, error) {
	began := time.Now()
	for {
		left, err := Look(ctx, r.Config, r.topic)
		if err != nil || !left.Nothing() || time.Since(began) >= r.QuietTime {
			return left, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(lookEvery, r.QuietTime)):
		}
	}
}

// end ends the removal.
func (r *run) end(ctx context.Context) (registry.Removal, error) {
	now := time.Now().UTC()
	d, err := r.Registry.AmendRemoval(ctx, r.topic, func(d *registry.Removal) bool {
		if !r.same(d) {
			return false
		}
		d.Ended = &now
		return true
	})
	return d, err
}
