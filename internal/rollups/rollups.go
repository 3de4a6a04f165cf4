package rollups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what rollups need. Registry and DB are required.
type Config struct {
	Registry *registry.Registry
	DB       *tables.DB
	// Owns reports whether a shard is this process's share. Default: all are.
	Owns func(shard string) bool
	// Every is the time from one round to the next. Default 5 s.
	Every time.Duration
	// BatchRows bounds the rows of one step. Default 1,000,000.
	BatchRows uint64
	// CheckEvery is the time from one look for lists of series that lost rows to the next,
	// which reads their keys. Default 1 min.
	CheckEvery time.Duration

	Hooks Hooks
	// Crash is called at the named points where tests end the process.
	Crash func(point string)
}

// StatementTime bounds one step.
const StatementTime = 10 * time.Minute

// Hooks are told of what happens; they must not block.
type Hooks struct {
	// Examined: the shard was looked for repeats up to a position.
	Examined func(ref schemas.ShardRef, pos uint64)
	// Summed: the shard's sums reach up to a position.
	Summed func(ref schemas.ShardRef, pos uint64)
	// Listed: the shard's series are listed up to a position.
	Listed func(ref schemas.ShardRef, pos uint64)
	// Dropped: what was derived from the shard did not fit its rows, and is derived again.
	Dropped func(ref schemas.ShardRef, why string)
	// Fault: a step failed and will be tried again.
	Fault func(ref schemas.ShardRef, err error)
}

// Rollups fills derived tables.
type Rollups struct {
	cfg     Config
	checked map[string]time.Time // lists of series, by topic; Round's
}

// New prepares rollups.
func New(cfg Config) (*Rollups, error) {
	if cfg.Registry == nil || cfg.DB == nil {
		return nil, errors.New("rollups: Config.Registry or Config.DB is missing")
	}
	if cfg.Every == 0 {
		cfg.Every = 5 * time.Second
	}
	if cfg.CheckEvery == 0 {
		cfg.CheckEvery = time.Minute
	}
	if cfg.BatchRows == 0 {
		cfg.BatchRows = 1_000_000
	}
	if cfg.Owns == nil {
		cfg.Owns = func(string) bool { return true }
	}
	if cfg.Crash == nil {
		cfg.Crash = func(string) {}
	}
	h := &cfg.Hooks
	if h.Examined == nil {
		h.Examined = func(schemas.ShardRef, uint64) {}
	}
	if h.Summed == nil {
		h.Summed = func(schemas.ShardRef, uint64) {}
	}
	if h.Listed == nil {
		h.Listed = func(schemas.ShardRef, uint64) {}
	}
	if h.Dropped == nil {
		h.Dropped = func(schemas.ShardRef, string) {}
	}
	if h.Fault == nil {
		h.Fault = func(schemas.ShardRef, error) {}
	}
	return &Rollups{cfg: cfg, checked: map[string]time.Time{}}, nil
}

// Run fills until ctx ends. A step under way is finished by ClickHouse or left to be found by
// the next round, which is the same.
func (r *Rollups) Run(ctx context.Context) error {
	for {
		more, err := r.Round(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			r.cfg.Hooks.Fault(schemas.ShardRef{}, err)
		}
		if more && err == nil {
			continue // a batch was not all there is
		}
		if backoff.Sleep(ctx, r.cfg.Every) != nil {
			return nil
		}
	}
}

// Round takes every shard of this process a step further. more: a shard has rows left.
func (r *Rollups) Round(ctx context.Context) (more bool, err error) {
	topics, err := r.cfg.Registry.Topics(ctx)
	if err != nil {
		return false, err
	}
	var failed []error
	for i := range topics {
		if !topics[i].HasOnce() {
			continue
		}
		left, err := r.topic(ctx, &topics[i])
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		more, failed = more || left, append(failed, err)
	}
	return more, errors.Join(failed...)
}

// topic takes the shards of a topic a step further: all are examined before one is summed, so
// that few sums are filled with repeats that are found a moment later.
func (r *Rollups) topic(ctx context.Context, t *schemas.Topic) (more bool, err error) {
	d, err := derived.Of(r.cfg.DB).State(ctx, t)
	if err == nil && d.Absent { // it was lost, or the sinks did not make the topic's tables yet
		if err = r.cfg.DB.EnsureDerived(ctx, t); err == nil {
			return true, nil
		}
	}
	if tables.Classify(err) == tables.Missing {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	entries, err := r.cfg.Registry.Shards(ctx, t.Name, 0)
	if err != nil {
		return false, err
	}
	gone := registry.DroppedOf(entries)
	var mine []schemas.ShardRef
	for ref, s := range d.Shards {
		switch {
		case !r.cfg.Owns(ref.ID.String()):
		case !gone[ref]:
			mine = append(mine, ref)
		case s.Series > 0:
			r.fault(ctx, ref, derived.Of(r.cfg.DB).DropSeries(ctx, ref))
		}
	}
	examined, more := r.examine(ctx, t, mine, d)
	if t.HasSeries() {
		if err := r.repairLists(ctx, t, gone); err != nil {
			return more, err
		}
		for _, ref := range mine {
			if to, ok := examined[ref]; ok {
				err := r.list(ctx, t, ref, d.Shards[ref], to)
				if tables.Classify(err) == tables.Missing { // the table was lost, and is filled again
					err, more = r.cfg.DB.EnsureDerived(ctx, t), true
				}
				r.fault(ctx, ref, err)
			}
		}
	}
	if !t.HasSums() {
		return more, ctx.Err()
	}
	if d, err = derived.Of(r.cfg.DB).State(ctx, t); err != nil { // with what was marked now
		return more, err
	}
	for _, ref := range mine {
		if to, ok := examined[ref]; ok {
			err := r.sum(ctx, t, ref, d.Shards[ref], to)
			if tables.Classify(err) == tables.Missing {
				err, more = r.cfg.DB.EnsureDerived(ctx, t), true
			}
			r.fault(ctx, ref, err)
		}
	}
	return more, ctx.Err()
}

func (r *Rollups) fault(ctx context.Context, ref schemas.ShardRef, err error) {
	if err != nil && ctx.Err() == nil {
		r.cfg.Hooks.Fault(ref, err)
	}
}

// maxAttempts bounds fills that were answered and stored nothing, as after a crash of
// ClickHouse.
const maxAttempts = 10

// sum adds the shard's rows up to a position to its sums.
func (r *Rollups) sum(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, s derived.Progress, to uint64) error {
	if s.Stored.Rows == 0 {
		return nil // retention may have dropped them since the entries were read: its sums are all that stays
	}
	if s.Sums.Pos > 0 && !s.Sums.Exact() {
		r.cfg.Crash("rollups.before-drop")
		if err := derived.Of(r.cfg.DB).DropSums(ctx, ref, r.cfg.Registry.DerivedDropper(t.Name)); err != nil {
			return err
		}
		r.cfg.Hooks.Dropped(ref, fmt.Sprintf("its sums hold %d diffs and %d repeats up to position %d, which its rows do not", s.Sums.N, s.Sums.Repeats, s.Sums.Pos))
		s.Sums = derived.Sums{}
	}
	if s.Sums.Pos >= to {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, StatementTime)
	defer cancel()
	for attempt := range maxAttempts {
		r.cfg.Crash("rollups.before-sum")
		err := derived.Of(r.cfg.DB).FillSums(bounded, t, ref, s.Sums.Pos, to, attempt)
		if errors.Is(err, tables.ErrHeadMoved) {
			return nil // another process was faster, or a verb dropped it: the next round reads where it is
		}
		if err != nil {
			return err
		}
		r.cfg.Crash("rollups.after-sum")
		summed, err := derived.Of(r.cfg.DB).Summed(ctx, t.Name)
		if err != nil {
			return err
		}
		if summed[ref.ID] != s.Sums.Pos {
			r.cfg.Hooks.Summed(ref, summed[ref.ID])
			return nil
		}
	}
	return fmt.Errorf("rollups: sums of %s: %d attempts after position %d were answered and stored nothing", ref, maxAttempts, s.Sums.Pos)
}
