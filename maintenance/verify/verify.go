package verify

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// Verifier proves that nothing is missing and nothing is stored twice.
type Verifier struct {
	js  jetstream.JetStream
	reg *registry.Registry
	db  *tables.DB
}

// New prepares a verifier.
func New(nc *nats.Conn, reg *registry.Registry, db *tables.DB) (*Verifier, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	return &Verifier{js: js, reg: reg, db: db}, nil
}

// Run compares, shard by shard, frames with rows, for one topic, or for all when topic
// is empty. It may run while events flow: a shard's rows, head and distinct ids come
// from one statement, and frames never change.
func (v *Verifier) Run(ctx context.Context, topic string) (*Report, error) {
	topics, err := v.topics(ctx, topic)
	if err != nil {
		return nil, err
	}
	rep := &Report{}
	for i := range topics {
		t, err := v.topic(ctx, &topics[i])
		if err != nil {
			return nil, err
		}
		rep.add(t)
	}
	cuts, err := v.cuts(ctx)
	if err != nil {
		return nil, err
	}
	rep.Problems = append(rep.Problems, cuts...)
	if topic != "" {
		return rep, nil
	}
	return rep, v.strays(ctx, topics, rep)
}

// topics are the named topic, or all.
func (v *Verifier) topics(ctx context.Context, name string) ([]schemas.Topic, error) {
	if name == "" {
		return v.reg.Topics(ctx)
	}
	t, err := v.reg.Topic(ctx, name)
	if err != nil && schemas.Reason(err) != "" {
		err = fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	return []schemas.Topic{t}, err
}
