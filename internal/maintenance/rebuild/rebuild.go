package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what a rebuild stands on.
type Config struct {
	NATS     *nats.Conn
	Registry *registry.Registry
	DB       *tables.DB
	// Progress, when set, hears of each batch: rows in the fresh table and rows in
	// the old.
	Progress func(done, total uint64)
	// Crash, when set, is called at the points where a test kills the rebuild; an
	// error ends it there and leaves everything as it is.
	Crash func(point string) error
}

// Plan is what a rebuild would do.
type Plan struct {
	Topic string `json:"topic"`
	// Shards and Rows of the old table; FromFrames of the shards are made from
	// SHARDS as far as it goes back, the others copied.
	Shards     int    `json:"shards"`
	Rows       uint64 `json:"rows"`
	FromFrames int    `json:"from_frames"`
	// Unfinished says that an earlier rebuild was killed, and where.
	Unfinished string `json:"unfinished,omitempty"`
	// Before are the old tables that earlier rebuilds kept.
	Before []string `json:"before,omitempty"`
}

// Result is what a rebuild did.
type Result struct {
	Topic string `json:"topic"`
	Rows  uint64 `json:"rows"`
	// Inserted rows came from frames, Copied from the old table, by this run.
	Inserted uint64 `json:"inserted"`
	Copied   uint64 `json:"copied"`
	// Before is the name of the old table; empty when it was dropped.
	Before string `json:"before,omitempty"`
	// Frozen is for how long sinks had to wait.
	Frozen time.Duration `json:"frozen_ns"`
}

// rebuild is one run.
type rebuild struct {
	cfg    Config
	js     jetstream.JetStream
	shards jetstream.Stream
	topic  schemas.Topic
	fresh  string // table
	target schemas.Topic

	touched map[schemas.Shard]bool           // shards the registry knows; true: by erasures or retention, only copied
	gone    map[schemas.Shard]bool           // dropped by retention: left out
	places  map[schemas.Shard][]tables.Place // where the old table had its shards
	res     Result
	total   uint64
	done    uint64
	copied  map[schemas.Shard]time.Time // when a shard was last anonymised, as it was copied
	// compared is when each was last anonymised as the tables were compared, cleared as quiet saw it last.
	compared, cleared map[schemas.Shard]time.Time
}

// Before is the name of the old table, which no topic has either.
func Before(topic string, at time.Time) string {
	return topic + tables.KeptInfix + at.UTC().Format("20060102T150405Z")
}

func newRebuild(ctx context.Context, cfg Config, name string) (*rebuild, error) {
	cfg.Registry = cfg.Registry.WithThird(cfg.DB)
	topic, err := cfg.Registry.AskedTopic(ctx, name)
	if err != nil {
		return nil, err
	}
	r := &rebuild{cfg: cfg, js: cfg.Registry.JetStream(), topic: topic, fresh: topic.Name + tables.FreshSuffix, target: topic, copied: map[schemas.Shard]time.Time{}}
	r.target.Name, r.res.Topic = r.fresh, topic.Name
	if r.shards, err = streams.Open(ctx, r.js, schemas.StreamShards); err != nil {
		return nil, fmt.Errorf("rebuild: stream %s: %w", schemas.StreamShards, err)
	}
	return r, nil
}

// states are of the topic's table and the fresh one.
func (r *rebuild) states(ctx context.Context) (old, fresh tables.TableState, err error) {
	if old, err = r.cfg.DB.TableState(ctx, r.topic.Name); err == nil {
		fresh, err = r.cfg.DB.TableState(ctx, r.fresh)
	}
	return old, fresh, err
}

// Look says what Run would do, and changes nothing.
func Look(ctx context.Context, cfg Config, topic string) (Plan, error) {
	r, err := newRebuild(ctx, cfg, topic)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Topic: r.topic.Name}
	old, fresh, err := r.states(ctx)
	if err != nil {
		return p, err
	}
	switch {
	case old.Frozen:
		p.Unfinished = "killed after the freeze: nothing is stored until it is run again or aborted"
	case fresh.Frozen:
		p.Unfinished = "killed after the swap: the old table only has to be renamed"
	case fresh.Exists:
		p.Unfinished = "killed while the fresh table was filled"
	}
	if err := r.prepare(ctx); err != nil {
		return p, err
	}
	counts, err := r.counts(ctx)
	for id, c := range counts {
		p.Shards++
		p.Rows += c.Rows
		if r.mayInsert(id) {
			p.FromFrames++
		}
	}
	if err != nil {
		return p, err
	}
	p.Before, err = cfg.DB.Kept(ctx, r.topic.Name)
	return p, err
}

// Abort opens the old table again and drops the fresh one, if a rebuild was killed
// before the swap.
func Abort(ctx context.Context, cfg Config, topic string) error {
	r, err := newRebuild(ctx, cfg, topic)
	if err != nil {
		return err
	}
	_, fresh, err := r.states(ctx)
	if err != nil {
		return err
	}
	if fresh.Frozen {
		return fmt.Errorf("%w: the tables of %q are swapped already; run it again to end it", schemas.ErrRequest, topic)
	}
	return errors.Join(cfg.DB.Thaw(ctx, r.topic.Name), cfg.DB.Drop(ctx, r.fresh))
}

// Derived empties what was derived from a topic's rows, and returns the tables: sinks fill them
// again, and readers take the rows until then. What cannot be derived again stays: the sums of
// shards whose rows retention dropped, and marks of copies of their events. dry only names the tables.
func Derived(ctx context.Context, cfg Config, topic string, dry bool) (emptied []string, err error) {
	t, err := cfg.Registry.Topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	for _, name := range t.DerivedTables() {
		emptied = append(emptied, schemas.DerivedTable(topic, name))
	}
	if len(emptied) == 0 {
		return nil, fmt.Errorf("%w: nothing is derived from topic %q: it is of kind %s and has no once_by", schemas.ErrRequest, topic, t.Kind)
	}
	if dry {
		return emptied, nil
	}
	return emptied, derived.Of(cfg.DB).DropAll(ctx, &t, cfg.Registry.DerivedDropper(topic))
}

// Run rebuilds a topic's table, or ends a rebuild that was killed. dropOld drops the
// old table in place of keeping it.
func Run(ctx context.Context, cfg Config, topic string, dropOld bool) (Result, error) {
	r, err := newRebuild(ctx, cfg, topic)
	if err != nil {
		return Result{Topic: topic}, err
	}
	res, err := r.run(ctx, dropOld)
	if err != nil {
		err = r.cfg.Registry.IfRemoved(ctx, err, &r.topic)
	}
	return res, err
}

func (r *rebuild) run(ctx context.Context, dropOld bool) (Result, error) {
	old, fresh, err := r.states(ctx)
	switch {
	case err != nil:
		return r.res, err
	case !old.Exists:
		return r.res, fmt.Errorf("%w: topic %q has no table yet; there is nothing to rebuild", schemas.ErrRequest, r.topic.Name)
	case fresh.Frozen:
		return r.res, r.keep(ctx, dropOld)
	}
	if err := r.prepare(ctx); err != nil {
		return r.res, err
	}
	if err := r.create(ctx); err != nil {
		return r.res, err
	}
	if err := r.crash("rebuild.after-create"); err != nil {
		return r.res, err
	}
	if !old.Frozen {
		for range maxPasses {
			moved, err := r.pass(ctx)
			if err != nil {
				return r.res, err
			}
			if moved < fewRows {
				break
			}
		}
	}
	began := time.Now()
	if err := r.swap(ctx); err != nil {
		return r.res, err
	}
	r.res.Frozen = time.Since(began)
	return r.res, r.keep(ctx, dropOld)
}

// Sinks go on while the table is filled: passes end when one moved little, or when
// they do not gain on the sinks; the rest is brought over while the sinks wait.
const (
	maxPasses = 20
	fewRows   = 100_000
)

func (r *rebuild) crash(point string) error {
	if r.cfg.Crash == nil {
		return nil
	}
	return r.cfg.Crash(point)
}

// prepare refuses what cannot be rebuilt, and finds the shards that may only be
// copied.
func (r *rebuild) prepare(ctx context.Context) error {
	cols, err := r.cfg.DB.Columns(ctx, r.topic.Name)
	if err != nil {
		return err
	}
	known := r.columns()
	for _, c := range cols {
		if !slices.Contains(known, c.Name) {
			return fmt.Errorf("%w: %w: table %s has the column %q, which would be lost; declare it (`almanac topics apply`) or drop it", schemas.ErrRequest, ErrColumns, r.topic.Name, c.Name)
		}
	}
	return r.quiet(ctx)
}

// columns are the names of those that the fresh table has.
func (r *rebuild) columns() []string {
	return append(r.topic.Columns(r.topic.Version), schemas.ColMonth, schemas.ColShard, schemas.ColPos)
}

// create makes the fresh table, unless a rebuild that was killed left it, as the
// topic is declared now; and gives the old one the columns it lacks.
func (r *rebuild) create(ctx context.Context) error {
	if err := r.cfg.DB.Ensure(ctx, &r.topic); err != nil {
		return err
	}
	left, err := r.cfg.DB.Columns(ctx, r.fresh)
	if err != nil {
		return err
	}
	known := r.columns()
	if len(left) > 0 && (len(left) != len(known) || slices.ContainsFunc(left, func(c schemas.Column) bool { return !slices.Contains(known, c.Name) })) {
		if err := r.cfg.DB.Drop(ctx, r.fresh); err != nil {
			return err
		}
	}
	if err := r.cfg.DB.CreateLike(ctx, &r.topic, r.fresh); err != nil {
		return err
	}
	storage, err := r.cfg.DB.Storage(ctx)
	if err != nil {
		return err
	}
	if err := r.cfg.DB.SamePolicy(ctx, storage, r.fresh, r.topic.Name); err != nil {
		return err
	}
	r.places, err = r.cfg.DB.Places(ctx, storage, r.topic.Name)
	return err
}

// follow moves a shard that was filled to where the old table has it, so that the first volume need not have room for
// all that lies on the cold one.
func (r *rebuild) follow(ctx context.Context, ref schemas.ShardRef) error {
	places := r.places[ref.ID]
	if len(places) == 0 || slices.ContainsFunc(places, func(p tables.Place) bool { return p.Volume != schemas.VolumeCold }) {
		return nil
	}
	return r.cfg.DB.MoveShard(ctx, schemas.ShardRef{Topic: r.fresh, Month: ref.Month, ID: ref.ID}, schemas.VolumeCold)
}

// mayInsert says whether a shard's frames may be inserted: nothing of them was
// erased, cleared or dropped, as far as the registry knows the shard.
func (r *rebuild) mayInsert(id schemas.Shard) bool {
	touched, known := r.touched[id]
	return known && !touched
}

// quiet refuses while an erasure is at work or fields are cleared, and when the topic was declared again,
// and notes which shards erasures and retention have touched.
func (r *rebuild) quiet(ctx context.Context) error {
	now, err := r.cfg.Registry.Topic(ctx, r.topic.Name)
	if err != nil {
		return err
	}
	if now.Version != r.topic.Version {
		return fmt.Errorf("rebuild: %w: %s has schema version %d, and had %d when this began; run it again", ErrChanged, r.topic.Name, now.Version, r.topic.Version)
	}
	erasures, err := r.cfg.Registry.Ledger(ctx, r.topic.Name)
	if err != nil {
		return err
	}
	if at := erasures.Only(ledger.Waiting, ledger.Erasing); len(at) > 0 {
		return fmt.Errorf("%w: %s of topic %q; wait for it (`almanac erase`), then run this again", ErrBusy, at[0].ID, r.topic.Name)
	}
	again, err := r.cfg.Registry.Behind(ctx, map[string]ledger.Erasures{r.topic.Name: erasures})
	if err != nil {
		return err
	}
	if at := again[r.topic.Name]; len(at) > 0 {
		return fmt.Errorf("%w: %s of topic %q is to be carried out again; `almanac erase resume %s` does it, then run this again", ErrBusy, at[0], r.topic.Name, at[0])
	}
	tallies, err := r.cfg.Registry.ErasureRecords(ctx, r.topic.Name)
	if err != nil {
		return err
	}
	for _, t := range tallies {
		if t.Clearing(time.Now()) {
			return fmt.Errorf("%w: retention clears fields of %s; wait until it has, then run this again", ErrBusy, schemas.PublicShardName(t.Topic, t.Month, t.Shard))
		}
	}
	// After the records: a clearing that has ended is in the entry with its mark's end.
	entries, err := r.cfg.Registry.Shards(ctx, r.topic.Name, 0)
	if err != nil {
		return err
	}
	r.cleared = clearedAt(entries)
	r.touched, r.gone = map[schemas.Shard]bool{}, map[schemas.Shard]bool{}
	for _, e := range entries {
		_, erased := tallies[e.ID]
		covered := slices.ContainsFunc(erasures, func(x ledger.Erasure) bool { return e.Overlaps(x.From, x.To) })
		r.touched[e.ID] = erased || covered || len(e.Anonymised) > 0 || e.Floor > 0 || e.Gone()
		r.gone[e.ID] = e.Gone()
	}
	return nil
}

// clearedAt is when each shard was last anonymised.
func clearedAt(entries []registry.Shard) map[schemas.Shard]time.Time {
	out := map[schemas.Shard]time.Time{}
	for i := range entries {
		if at := entries[i].AnonymisedAt; !at.IsZero() {
			out[entries[i].ID] = at
		}
	}
	return out
}

// keep gives the old table, which has the fresh one's name after the swap, a name
// of its own.
func (r *rebuild) keep(ctx context.Context, dropOld bool) error {
	if old, fresh, err := r.states(ctx); err != nil || old.Frozen || !fresh.Frozen {
		return errors.Join(fmt.Errorf("rebuild: %w: %s is not the old table of %s any more; does another rebuild run? Look with --dry-run", ErrDiffers, r.fresh, r.topic.Name), err)
	}
	// Rows that the old table lacked stand at positions that were examined and summed.
	if err := derived.Of(r.cfg.DB).DropAll(ctx, &r.topic, r.cfg.Registry.DerivedDropper(r.topic.Name)); err != nil {
		return err
	}
	if dropOld {
		return r.cfg.DB.Drop(ctx, r.fresh)
	}
	r.res.Before = Before(r.topic.Name, time.Now())
	return r.cfg.DB.Rename(ctx, r.fresh, r.res.Before)
}
