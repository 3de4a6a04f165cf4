package bench

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// eachFrame receives the topic's frames from SHARDS, in order, until they have so
// many rows, over a connection such as a process has.
func eachFrame(ctx context.Context, cfg *Config, topic string, rows int, f func(jetstream.Msg, schemas.Placed) error) error {
	nc, err := nats.Connect(cfg.NATSURL)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	c, err := js.OrderedConsumer(ctx, schemas.StreamShards, jetstream.OrderedConsumerConfig{FilterSubjects: []string{schemas.ShardsFilter(topic)}})
	if err != nil {
		return fmt.Errorf("reading the frames of %s: %w", topic, err)
	}
	msgs, err := c.Messages(jetstream.PullMaxMessages(2000))
	if err != nil {
		return err
	}
	defer msgs.Stop()
	for rows > 0 {
		m, err := msgs.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("reading the frames of %s, %d rows before the end: %w", topic, rows, err)
		}
		p, err := schemas.ParsePlaced(m.Headers())
		if err != nil {
			return fmt.Errorf("reading the frames of %s: %w", topic, err)
		}
		if err := f(m, p); err != nil {
			return err
		}
		rows -= p.Rows
	}
	return nil
}
