package cold

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what a Mover needs. Registry and DB are required.
type Config struct {
	Registry *registry.Registry
	DB       *tables.DB

	// Owns reports, before each round, whether the work is this process's. Default: always.
	Owns func() bool
	// Every is the time from one round to the next. Default 1 min.
	Every time.Duration
	// Now is the clock. Default time.Now: one that is wrong moves a shard too early, and back.
	Now func() time.Time

	Hooks Hooks
	// Crash is called at the named points where tests kill the process.
	Crash func(point string)
}

// Hooks tell what happens; each may be nil. They must not block.
type Hooks struct {
	// Moved: the shard's parts are on the volume, after so long.
	Moved func(m Move, took time.Duration)
	// Fault: something failed and is tried again in the next round.
	Fault func(ref schemas.ShardRef, err error)
}

// Mover moves closed shards.
type Mover struct{ cfg Config }

// New prepares a mover.
func New(cfg Config) *Mover {
	if cfg.Every == 0 {
		cfg.Every = time.Minute
	}
	if cfg.Owns == nil {
		cfg.Owns = func() bool { return true }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Crash == nil {
		cfg.Crash = func(string) {}
	}
	return &Mover{cfg}
}

// Run does a round every Config.Every, until ctx ends.
func (m *Mover) Run(ctx context.Context) error {
	timer := time.NewTimer(m.cfg.Every)
	defer timer.Stop()
	for ; ; timer.Reset(m.cfg.Every) {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if !m.cfg.Owns() {
			continue
		}
		err := m.Round(ctx)
		if err == nil || m.cfg.DB.Returned(ctx, err) || ctx.Err() != nil || m.cfg.Hooks.Fault == nil {
			continue
		}
		m.cfg.Hooks.Fault(schemas.ShardRef{}, err)
	}
}

// Round moves every shard that is not where it belongs. One that fails does not hold up the others.
func (m *Mover) Round(ctx context.Context) error {
	topics, err := m.cfg.Registry.Topics(ctx)
	if err != nil {
		return err
	}
	storage, err := m.cfg.DB.Storage(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for i := range topics {
		if t := &topics[i]; t.ColdAfterDays > 0 || storage.HasCold(t.Name) {
			failed = append(failed, m.topic(ctx, storage, t))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(failed...)
}

// topic moves the shards of one.
func (m *Mover) topic(ctx context.Context, storage tables.Storage, t *schemas.Topic) error {
	near := storage.Near(t.Name)
	if near == "" {
		return nil // no table yet
	}
	shards, err := m.cfg.Registry.Shards(ctx, t.Name, 0)
	if err != nil {
		return err
	}
	places, err := m.cfg.DB.Places(ctx, storage, t.Name)
	if err != nil {
		return err
	}
	moves := Due(t, shards, places, near, m.cfg.Now())
	if len(moves) == 0 {
		return nil
	}
	m.cfg.Crash("cold.before-policy")
	if err := m.cfg.DB.UseCold(ctx, storage, t.Name); err != nil {
		return err
	}
	m.cfg.Crash("cold.after-policy")
	var failed []error
	for _, move := range moves {
		began := time.Now()
		if err := m.cfg.DB.MoveShard(ctx, move.Ref, move.To); err != nil {
			failed = append(failed, m.cfg.Registry.IfRemoved(ctx, err, t))
			if ctx.Err() != nil || tables.Classify(err) == tables.Unreachable {
				break
			}
			continue
		}
		m.cfg.Crash("cold.after-move")
		if m.cfg.Hooks.Moved != nil {
			m.cfg.Hooks.Moved(move, time.Since(began))
		}
	}
	return errors.Join(failed...)
}
