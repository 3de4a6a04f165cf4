package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Verifier proves that nothing is missing and nothing is stored twice.
type Verifier struct {
	js  jetstream.JetStream
	reg *registry.Registry
	db  *tables.DB

	full bool // takes nothing from proofs
	// fronts: they are compared with their tables.
	fronts bool
	// patient: it hurries no sink, and finds more pending.
	patient bool
	odd     func(error) // of a run: told of entries that are not readable
	// tell, when not nil, is told of each shard that was compared, and of is how many there are.
	tell     func(shards, of int)
	told, of int
}

// New prepares a verifier.
func New(nc *nats.Conn, reg *registry.Registry, db *tables.DB) (*Verifier, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	return &Verifier{js: js, reg: reg.WithThird(db), db: db}, nil
}

// Full returns a verifier that takes nothing from what earlier runs proved, and has
// ClickHouse compare every file of the tables with its checksum.
func (v *Verifier) Full() *Verifier {
	full := *v
	full.full = true
	return &full
}

// Patient returns a verifier that leaves sinks to their own pace: no reader waits for a scheduled run.
func (v *Verifier) Patient() *Verifier {
	patient := *v
	patient.patient = true
	return &patient
}

// Telling returns a verifier that tells how far a run is: how many shards are compared, and of how many.
func (v *Verifier) Telling(tell func(shards, of int)) *Verifier {
	telling := *v
	telling.tell = tell
	return &telling
}

// count counts the shards of a run that tells how far it is.
func (v *Verifier) count(ctx context.Context, topics []schemas.Topic) error {
	if v.tell == nil {
		return nil
	}
	for i := range topics {
		all, err := v.reg.Shards(ctx, topics[i].Name, 0)
		if err != nil && (ctx.Err() != nil || !refused(err)) {
			return err
		}
		v.of += len(all)
	}
	v.tell(0, v.of)
	return nil
}

// next tells that another shard is compared. Shards may come while the run is under way.
func (v *Verifier) next() {
	if v.tell != nil {
		v.told++
		v.tell(v.told, max(v.told, v.of))
	}
}

// Run compares, shard by shard, frames with rows, for one topic, or for all when topic
// is empty. It may run while events flow: a shard's rows, head and distinct ids come
// from one statement, and frames never change.
//
// What cannot be examined is named, and the rest is examined all the same: an entry that
// is not readable, a topic that ClickHouse refuses to count, a topic that the registry
// lost.
func (v *Verifier) Run(ctx context.Context, topic string) (*Report, error) {
	rep, said := &Report{}, map[string]bool{}
	run := *v
	v = &run
	v.odd = func(err error) {
		if text := err.Error(); !said[text] {
			said[text] = true
			rep.Problems = append(rep.Problems, text)
		}
	}
	v.reg = v.reg.Skipping(v.odd)
	lost, err := v.Lost(ctx, topic)
	if err != nil {
		return nil, err
	}
	for i := range lost {
		rep.Problems = append(rep.Problems, lost[i].String())
	}
	removals, err := v.reg.Removals(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(removals)) {
		if d := removals[name]; d.Ended == nil && (topic == "" || topic == name) {
			rep.Problems = append(rep.Problems, fmt.Sprintf("topic %s is being removed since %s; run `almanac topics rm %s` to end that", name, d.Began.Format(time.RFC3339), name))
		}
	}
	topics, err := v.topics(ctx, topic)
	if err != nil && len(rep.Problems) > 0 && (errors.Is(err, schemas.ErrUnknownTopic) || errors.Is(err, registry.ErrUnreadable)) {
		return rep, nil // it is named
	}
	if err != nil {
		return nil, err
	}
	if err := v.count(ctx, topics); err != nil {
		return nil, err
	}
	for i := range topics {
		t, err := v.topic(ctx, &topics[i])
		switch {
		case err != nil && ctx.Err() == nil && refused(err):
			rep.Problems = append(rep.Problems, fmt.Sprintf("topic %s could not be examined: %s", topics[i].Name, err))
			continue
		case err != nil:
			return nil, err
		}
		rep.add(t)
	}
	if err := v.ledger(ctx, topic, rep); err != nil {
		return nil, err
	}
	cuts, messages, err := v.cuts(ctx)
	if err != nil {
		return nil, err
	}
	rep.LostMessages = messages
	rep.Problems = append(rep.Problems, cuts...)
	if topic != "" {
		return rep, nil
	}
	return rep, v.unroutable(ctx, topics, rep)
}

// refused reports whether an error is about what was asked for, and not about the way to
// the servers: the next question may well be answered.
func refused(err error) bool {
	var ch *tables.Error
	return errors.Is(err, registry.ErrUnreadable) || errors.As(err, &ch)
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
