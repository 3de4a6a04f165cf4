package retention

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/cleaner"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Janitor purges the streams and carries out retention.
type Janitor struct {
	cfg     Config
	js      jetstream.JetStream
	shards  jetstream.Stream
	cleaner *cleaner.Cleaner
	outages *streams.Outages

	past []snapshot // checkpoints, oldest first: EVENTS keeps what was routed for KeepTime more
	// sweptAt is when the shards were last swept by age: each sweep looks at every
	// shard, so a hundred in a replay window are enough.
	sweptAt time.Time
	// sweptGiven is when the parts of keyed requests were last looked at.
	sweptGiven time.Time
	// blankedAt is when lanes were last looked at for publishBlanks; see there.
	blankedAt time.Time
	// looked is, for a topic that has a shard to drop, where its shards had rows when retention
	// first looked; see derived.
	looked map[string]look
	// alone says that nothing copies these streams: they are being restored, and say of the copy that they come from that it is under way.
	alone bool
}

// New prepares a janitor on a connection where registry.Setup has run.
func New(ctx context.Context, nc *nats.Conn, cfg Config) (*Janitor, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	j := &Janitor{cfg: cfg, outages: streams.NewOutages(nc), looked: map[string]look{}}
	var err error
	if j.js, err = jetstream.New(nc); err != nil {
		return nil, err
	}
	if j.shards, err = streams.Open(ctx, j.js, schemas.StreamShards); err != nil {
		return nil, fmt.Errorf("retention: stream %s: %w", schemas.StreamShards, err)
	}
	j.cleaner = cleaner.New(cleaner.Config{Registry: cfg.Registry, DB: cfg.DB, MinAge: cfg.KeepTime, MayTake: j.mayTake, Crash: cfg.Crash})
	return j, nil
}

// Run does a round every Config.Every, until ctx ends.
func (j *Janitor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { j.outages.Follow(ctx) })
	wg.Go(func() { j.noteEnds(ctx) })
	timer := time.NewTimer(j.cfg.Every)
	defer timer.Stop()
	for ; ; timer.Reset(j.cfg.Every) {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if j.cfg.Owns != nil && !j.cfg.Owns() {
			continue
		}
		err := j.Round(ctx)
		if err == nil || j.cfg.DB.Returned(ctx, err) || ctx.Err() != nil {
			continue
		}
		j.cfg.Hooks.fault(schemas.ShardRef{}, err)
	}
}

// Round purges once what may go, and takes each shard that is past its topic's retention
// one step further.
func (j *Janitor) Round(ctx context.Context) error {
	ctx, end := j.outages.Bound(ctx)
	defer end()
	if err := j.mayPurge(ctx); err != nil {
		return err
	}
	if err := j.mayTake(ctx); err != nil {
		return untilCopied(err)
	}
	topics, err := j.cfg.Registry.AllShards(ctx)
	if err != nil {
		return err
	}
	now, err := j.now(ctx)
	if err != nil {
		return err
	}
	// Before retention, which waits for what leaves a front.
	return untilCopied(inTurn(
		func() error { _, err := j.cleaner.Round(ctx, now); return err },
		func() error { return j.sweep(ctx, now) },
		func() error { return j.retain(ctx, topics, now) },
		func() error { return j.publishBlanks(ctx, topics, now) },
	))
}

// inTurn does what a round has, also where something failed, up to where a copy of the streams begins.
func inTurn(steps ...func() error) error {
	var failed []error
	for _, step := range steps {
		err := step()
		failed = append(failed, err)
		if errors.Is(err, streams.ErrCopying) {
			break
		}
	}
	return errors.Join(failed...)
}

// untilCopied returns nil for a round that a copy ended. What failed in it before fails in the next one too, and is told then.
func untilCopied(err error) error {
	if errors.Is(err, streams.ErrCopying) {
		return nil
	}
	return err
}

// mayPurge returns why nothing may be purged now. A purge that is the first write a full
// disk refuses can hang the stream forever (docs/upstream.md).
func (j *Janitor) mayPurge(ctx context.Context) error {
	var err error
	if j.cfg.MayPurge != nil {
		err = j.cfg.MayPurge()
	}
	if err == nil {
		err = streams.Stores(ctx, j.js)
	}
	if err != nil {
		return fmt.Errorf("janitor: nothing is purged or dropped until NATS can write: %w", err)
	}
	return nil
}

// now is the janitor's time; see Config.Now.
func (j *Janitor) now(ctx context.Context) (time.Time, error) {
	if j.cfg.Now != nil {
		return j.cfg.Now(), nil
	}
	info, err := streams.Info(ctx, j.js, schemas.StreamShards)
	if err != nil {
		return time.Time{}, fmt.Errorf("janitor: %s: %w", schemas.StreamShards, err)
	}
	now := time.Now()
	if !info.TimeStamp.IsZero() && info.TimeStamp.Before(now) {
		now = info.TimeStamp
	}
	return now, nil
}
