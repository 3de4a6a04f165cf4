package seals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what a Sealer needs. Registry and DB are required.
type Config struct {
	Registry *registry.Registry
	DB       *tables.DB
	// Owns reports, before each round, whether sealing is this process's. Default: always.
	Owns func() bool
	// Every is the time from one round to the next. Default 5 s.
	Every time.Duration

	Hooks Hooks
	// Crash is called at the named points where tests end the process.
	Crash func(point string)
}

// Hooks are told of what happens; they must not block.
type Hooks struct {
	// Sealed: a seal was added.
	Sealed func(s schemas.Seal)
	// Fault: a shard was not sealed and will be tried again.
	Fault func(ref schemas.ShardRef, err error)
}

// ErrRows: a closed shard does not have the rows that its entry says.
var ErrRows = errors.New("the shard has other rows than its entry says")

// Sealer seals shards.
type Sealer struct {
	cfg   Config
	known map[string]*chain
}

// chain is what a topic's seals say, up to the last one that was read.
type chain struct {
	last    uint64
	current map[schemas.ShardRef]schemas.Seal // of each shard the newest
}

// New prepares a sealer.
func New(cfg Config) (*Sealer, error) {
	if cfg.Registry == nil || cfg.DB == nil {
		return nil, errors.New("seals: Config.Registry or Config.DB is missing")
	}
	if cfg.Every == 0 {
		cfg.Every = 5 * time.Second
	}
	if cfg.Owns == nil {
		cfg.Owns = func() bool { return true }
	}
	if cfg.Crash == nil {
		cfg.Crash = func(string) {}
	}
	if cfg.Hooks.Sealed == nil {
		cfg.Hooks.Sealed = func(schemas.Seal) {}
	}
	if cfg.Hooks.Fault == nil {
		cfg.Hooks.Fault = func(schemas.ShardRef, error) {}
	}
	return &Sealer{cfg: cfg, known: map[string]*chain{}}, nil
}

// Run seals until ctx ends.
func (s *Sealer) Run(ctx context.Context) error {
	for {
		if s.cfg.Owns() {
			if err := s.Round(ctx); err != nil && ctx.Err() == nil && tables.Classify(err) != tables.Unreachable {
				s.cfg.Hooks.Fault(schemas.ShardRef{}, err)
			}
		}
		if backoff.Sleep(ctx, s.cfg.Every) != nil {
			return nil
		}
	}
}

// Round seals every shard that needs it.
func (s *Sealer) Round(ctx context.Context) error {
	topics, err := s.cfg.Registry.Topics(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for i := range topics {
		if topics[i].Spec().Seals {
			failed = append(failed, s.topic(ctx, &topics[i]))
		}
	}
	return errors.Join(failed...)
}

// topic seals the shards of a topic, one after the other.
func (s *Sealer) topic(ctx context.Context, t *schemas.Topic) error {
	shards, err := s.cfg.Registry.Shards(ctx, t.Name, 0)
	if err != nil {
		return err
	}
	tallies, err := s.cfg.Registry.ErasureRecords(ctx, t.Name)
	if err != nil {
		return err
	}
	c, err := s.read(ctx, t.Name)
	if err != nil {
		return err
	}
	for i := range shards {
		e, record := &shards[i], tallies[shards[i].ID]
		next, due := due(t, e, &record, c.current, time.Now())
		if !due {
			continue
		}
		if err := s.seal(ctx, t, e, &record, next, c); err != nil {
			delete(s.known, t.Name) // what stands there is read again
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !errors.Is(err, registry.ErrConflict) {
				s.cfg.Hooks.Fault(e.Ref(), err)
			}
			if errors.Is(err, registry.ErrConflict) || tables.Classify(err) == tables.Unreachable {
				return nil // the next round goes on
			}
		}
	}
	return nil
}

// read is the topic's chain, from memory where nothing was added since.
func (s *Sealer) read(ctx context.Context, topic string) (*chain, error) {
	last, err := s.cfg.Registry.LastSeal(ctx, topic)
	if err != nil {
		return nil, err
	}
	if c := s.known[topic]; c != nil && c.last == last {
		return c, nil
	}
	all, err := s.cfg.Registry.Seals(ctx, topic)
	if err != nil {
		return nil, err
	}
	if n := uint64(len(all)); n < last || n > 0 && all[n-1].Number < last {
		return nil, fmt.Errorf("%w: the chain of topic %s ends at number %d, and %d seals are there: some are lost, and no shard is sealed until they are restored", schemas.ErrSeal, topic, last, n)
	}
	c := &chain{last: last, current: map[schemas.ShardRef]schemas.Seal{}}
	for _, one := range all {
		c.last = max(c.last, one.Number)
		c.current[one.Ref()] = one
	}
	s.known[topic] = c
	return c, nil
}

// seal adds the seal that is due, over the rows as they are.
func (s *Sealer) seal(ctx context.Context, t *schemas.Topic, e *registry.Shard, record *ledger.ErasureRecord, next schemas.Seal, c *chain) error {
	if next.Why != schemas.SealDropped {
		var err error
		if next.Digest, next.Rows, err = s.cfg.DB.RowsDigest(ctx, t, e.Ref(), t.Version); err != nil {
			return err
		}
	}
	now, err := s.cfg.Registry.Shard(ctx, e.Ref())
	if err != nil {
		return err
	}
	gone, err := s.cfg.Registry.ErasureRecord(ctx, e.Ref())
	if err != nil {
		return err
	}
	if now.Rev() != e.Rev() || gone.Rev != record.Rev {
		return registry.ErrConflict // it changed while it was read
	}
	if next.Why != schemas.SealDropped && next.Rows != e.Rows {
		return fmt.Errorf("%w: %d in ClickHouse and %d in the entry; `almanac verify %s` says more", ErrRows, next.Rows, e.Rows, t.Name)
	}
	s.cfg.Crash("seals.before-add")
	next.At = time.Now()
	if next, err = s.cfg.Registry.AddSeal(ctx, next, c.last); err != nil {
		return err
	}
	s.cfg.Crash("seals.after-add")
	c.last, c.current[next.Ref()] = next.Number, next
	s.cfg.Hooks.Sealed(next)
	return nil
}
