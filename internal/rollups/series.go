package rollups

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// repairLists drops the lists of this process's shards that lost rows; they are filled again. It looks
// once in CheckEvery.
func (r *Rollups) repairLists(ctx context.Context, t *schemas.Topic, gone map[schemas.ShardRef]bool) error {
	if time.Since(r.checked[t.Name]) < r.cfg.CheckEvery {
		return nil
	}
	broken, err := derived.Of(r.cfg.DB).BrokenSeries(ctx, t)
	if err != nil {
		return err
	}
	r.checked[t.Name] = time.Now()
	for _, ref := range broken {
		if gone[ref] || !r.cfg.Owns(ref.ID.String()) {
			continue
		}
		if err := derived.Of(r.cfg.DB).DropSeries(ctx, ref); err != nil {
			return err
		}
		r.cfg.Hooks.Dropped(ref, "its list of series lost rows")
	}
	return nil
}

// list adds the series of a shard's rows up to a position to the topic's list. A shard with
// other rows than it had lost its list with its repeats, and begins again.
func (r *Rollups) list(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, s derived.Progress, to uint64) error {
	from := s.Series
	if s.Doubted {
		from = 0
	}
	if from >= to {
		return nil
	}
	r.cfg.Crash("rollups.before-list")
	bounded, cancel := context.WithTimeout(ctx, StatementTime)
	defer cancel()
	err := derived.Of(r.cfg.DB).FillSeries(bounded, t, ref, s.Series, from, to)
	if errors.Is(err, tables.ErrHeadMoved) {
		return nil // it was dropped meanwhile: the next round reads where it is
	}
	if err != nil {
		return err
	}
	r.cfg.Crash("rollups.after-list")
	r.cfg.Hooks.Listed(ref, to)
	return nil
}
