package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// Judge makes frames of a message of EVENTS as the router does, in order; none of
// one that it keeps as a dead letter.
type Judge func(t *schemas.Topic, msg *jetstream.RawStreamMsg) ([]schemas.Frame, [][]byte)

// Repairer finds damage and heals it. It may run while events flow.
type Repairer struct {
	js     jetstream.JetStream
	events jetstream.Stream
	shards jetstream.Stream
	reg    *registry.Registry
	db     *tables.DB
	judge  Judge
	// patience is how long a sink may take before its work is done for it.
	patience time.Duration
}

// DefaultPatience is far above what a sink waits for company, and a second insert
// after the same head is refused whoever makes it.
const DefaultPatience = 10 * time.Second

// New prepares a repairer. The registry may be empty.
func New(ctx context.Context, nc *nats.Conn, reg *registry.Registry, db *tables.DB, judge Judge) (*Repairer, error) {
	if judge == nil {
		return nil, errors.New("repair: no judge of messages was given")
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	r := &Repairer{js: js, reg: reg, db: db, judge: judge, patience: DefaultPatience}
	if r.events, err = js.Stream(ctx, schemas.StreamEvents); err != nil {
		return nil, fmt.Errorf("repair: stream %s: %w", schemas.StreamEvents, err)
	}
	if r.shards, err = js.Stream(ctx, schemas.StreamShards); err != nil {
		return nil, fmt.Errorf("repair: stream %s: %w", schemas.StreamShards, err)
	}
	return r, nil
}

// Plan finds what is damaged, of one topic or of all, and how it can be healed.
// Nothing is changed.
func (r *Repairer) Plan(ctx context.Context, topic string) (*Plan, error) {
	p := &Plan{}
	topics, err := r.topics(ctx, topic, p)
	if err != nil {
		return nil, err
	}
	for i := range topics {
		if err := r.planTopic(ctx, &topics[i], p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// planTopic adds what one topic needs.
func (r *Repairer) planTopic(ctx context.Context, t *found, p *Plan) error {
	if err := r.look(ctx, t); err != nil {
		return err
	}
	for _, ref := range t.refs() {
		if err := r.planShard(ctx, t, ref, p); err != nil {
			return err
		}
	}
	planEntries(t, p)
	return r.planLanes(ctx, t, p)
}
