package almanac

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/documents"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	querytimers "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// Declare declares a topic that does not exist. One that exists stays as it is, whatever t says: `almanac topics apply` changes it.
// ErrWrongKind: it is of another kind.
func (c *Client) Declare(ctx context.Context, t schemas.Topic) error {
	if err := c.usable(); err != nil {
		return err
	}
	live, err := c.reg.Topic(ctx, t.Name)
	if errors.Is(err, schemas.ErrUnknownTopic) {
		live, _, err = c.reg.Apply(ctx, t, false)
	}
	if err != nil {
		return err
	}
	if t.Kind == "" {
		t.Kind = schemas.KindLog
	}
	if live.Kind != t.Kind {
		return fmt.Errorf("%w: topic %q is of kind %s; declare one of kind %s under another name", ErrWrongKind, t.Name, live.Kind, t.Kind)
	}
	return nil
}

// DeclareGroup declares a group of timers that does not exist, and its topic, which is "timers" unless g names
// another. One that exists stays as it is: `almanac timers groups apply` changes it.
func (c *Client) DeclareGroup(ctx context.Context, g timers.GroupSpec) error {
	if err := c.usable(); err != nil {
		return err
	}
	topic := g.Topic
	if topic == "" {
		topic = schemas.DefaultTimerTopic
	}
	_, _, err := timers.ApplyGroup(ctx, c.reg, topic, g.Name, func(live *timer.Group) error {
		if live.Slots > 0 {
			return nil
		}
		made := *live
		*live = g
		live.Topic, live.Name, live.CreatedAt = made.Topic, made.Name, made.CreatedAt
		return nil
	})
	return err
}

// Producer returns the producer of a topic, which Close closes. Every call with the same topic returns the same one.
// ErrUnknownTopic: it is not declared.
func (c *Client) Producer(ctx context.Context, topic string) (*producer.Producer, error) {
	return once(ctx, c,
		func() (*producer.Producer, bool) { p, ok := c.producers[topic]; return p, ok },
		func() (*producer.Producer, error) { return producer.Connect(ctx, c.cfg.NATS, c.cfg.producer(topic)) },
		func(p *producer.Producer) { c.producers[topic] = p },
		func(p *producer.Producer) { _ = p.Close(ctx) })
}

// Documents opens the documents of a topic of kind document. Keep what it returns: it reads the topic each time.
func (c *Client) Documents(ctx context.Context, topic string) (*documents.Collection, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	cfg := documents.Config{By: c.cfg.Service}
	if c.db != nil {
		cfg.Archive = archive.New(c.reg, c.db)
	}
	return documents.Open(ctx, c.nc, topic, cfg)
}

// Timers opens a group of timers of the topic "timers". Keep what it returns. See TimersOf for other topics.
func (c *Client) Timers(ctx context.Context, group string) (*timers.Group, error) {
	all, err := c.TimersOf(ctx, schemas.DefaultTimerTopic)
	if err != nil {
		return nil, err
	}
	return all.Group(ctx, group)
}

// TimersOf opens all groups of a topic of kind timer.
func (c *Client) TimersOf(ctx context.Context, topic string) (*timers.Timers, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	cfg := timers.Config{}
	if c.db != nil {
		cfg.Archive = &querytimers.Archive{DB: c.db}
	}
	return timers.Open(ctx, c.nc, c.reg, topic, cfg)
}
