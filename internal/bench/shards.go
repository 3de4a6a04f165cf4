package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// makeShards gives the topic so many more real shards in the months before this
// one: events that rotate at every frame, routed and stored by parts of its own,
// so no others may run. All but the last of a lane and month are closed when it
// returns: closing them is not part of what is timed next. The present month is not touched, and the months before it
// must have no other events.
func makeShards(ctx context.Context, cfg *Config, topic schemas.Topic, shards, months int) error {
	making := *cfg
	making.housekeeping = makingHousekeeping
	cfg = &making
	usual := topic.Rotate
	topic.Rotate = schemas.Rotation{Rows: 1}
	if _, _, err := cfg.Registry.Apply(ctx, topic, false); err != nil {
		return err
	}
	parts, err := startParts(ctx, cfg) // a router that runs hears of the new rotation only after a while
	if err != nil {
		return err
	}
	err = parts.failed(oneEach(parts.ctx, cfg, &topic, shards, months))
	parts.stop()
	if err != nil {
		return err
	}
	topic.Rotate = usual
	_, _, err = cfg.Registry.Apply(ctx, topic, false)
	return err
}

// makingHousekeeping is how often sealed shards are closed while they are made:
// seldom enough that making them takes no longer.
const makingHousekeeping = 3 * time.Second

// oneEach publishes as many events as there shall be shards, each a frame of its
// own, and waits until all are stored.
func oneEach(ctx context.Context, cfg *Config, topic *schemas.Topic, shards, months int) error {
	topics := []schemas.Topic{*topic}
	had, err := cfg.Registry.Shards(ctx, topic.Name, 0)
	if err != nil {
		return err
	}
	before, err := storedRows(ctx, cfg, topics)
	if err != nil {
		return err
	}
	users := make([]string, topic.Lanes)
	for lane := range users {
		users[lane] = userOf(topic, lane)
	}
	first := time.Now().UTC()
	first = time.Date(first.Year(), first.Month(), 1, 0, 0, 0, 0, time.UTC)
	// One goroutine a lane, each with a producer: the answer to one event comes
	// before the next is logged, so no two share a frame.
	g, gctx := errgroup.WithContext(ctx)
	for lane, user := range users {
		g.Go(func() error {
			p, err := producer.Connect(gctx, cfg.NATSURL, producer.Config{Topic: topic.Name, Linger: -1})
			if err != nil {
				return err
			}
			for i := lane; i < shards; i += len(users) {
				at := first.AddDate(0, -1-(i/len(users))%months, 0).Add(time.Duration(i) * time.Second)
				if err := p.Publish(gctx, schemas.Event{Time: at, UserID: user, Message: "old"}); err != nil {
					return err
				}
			}
			return p.Close(gctx)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := waitStored(ctx, cfg, topics, before+shards); err != nil {
		return err
	}
	tick := time.NewTicker(makingHousekeeping / 3)
	defer tick.Stop()
	for {
		entries, err := cfg.Registry.Shards(ctx, topic.Name, 0)
		if err != nil {
			return err
		}
		if made := len(entries) - len(had); made != shards {
			return fmt.Errorf("the registry has %d more shards of %s, %d were to be made", made, topic.Name, shards)
		}
		if !slices.ContainsFunc(entries, func(e registry.Shard) bool { return e.Status == registry.Sealed }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
