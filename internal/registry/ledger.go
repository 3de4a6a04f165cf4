package registry

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// Ledger reads the erasures of a topic.
func (r *Registry) Ledger(ctx context.Context, topic string) (ledger.Erasures, error) {
	return r.ledger(ctx, schemas.LedgerKeys(topic))
}

// Ledgers reads the erasures of every topic.
func (r *Registry) Ledgers(ctx context.Context) (map[string]ledger.Erasures, error) {
	all, err := r.ledger(ctx, schemas.AllLedgerKeys)
	if err != nil {
		return nil, err
	}
	out := map[string]ledger.Erasures{}
	for _, e := range all {
		out[e.Topic] = append(out[e.Topic], e)
	}
	return out, nil
}

func (r *Registry) ledger(ctx context.Context, filter string) (ledger.Erasures, error) {
	erasures, err := listNewest[ledger.Erasure](ctx, r, filter)
	return ledger.Sorted(erasures), err
}

// ErasedSince returns the ids of the erasures of a topic that mean messages of EVENTS from a
// sequence on, with events between two times (unix ns).
func (r *Registry) ErasedSince(ctx context.Context, topic string, seq uint64, from, to int64) (ids []string, err error) {
	l, err := r.Ledger(ctx, topic)
	if err != nil {
		return nil, err
	}
	for _, e := range l.Covering(schemas.Source{Seq: seq}, from, to) {
		ids = append(ids, e.ID)
	}
	return ids, nil
}

// Erasure reads one entry of the ledger.
func (r *Registry) Erasure(ctx context.Context, topic, id string) (ledger.Erasure, error) {
	var e ledger.Erasure
	rev, err := r.get(ctx, schemas.LedgerKey(topic, id), &e)
	e.Rev = rev
	return e, err
}

// Enter writes a new entry; ErrConflict when its id is taken, ErrLedgerFull when
// the topic has as many as its readers can heed.
func (r *Registry) Enter(ctx context.Context, e ledger.Erasure) (ledger.Erasure, error) {
	l, err := r.Ledger(ctx, e.Topic)
	if err != nil {
		return e, err
	}
	if len(l) >= ledger.MaxErasures {
		return e, fmt.Errorf("%w: topic %q has %d erasures, the limit is %d; name several users in one erasure, and `almanac erase forget` those that no stream needs any more", ErrLedgerFull, e.Topic, len(l), ledger.MaxErasures)
	}
	if size, terms := append(ledger.Cover(l), e).Weight(); size > ledger.MaxTopicBytes || terms > ledger.MaxTerms {
		return e, fmt.Errorf("%w: with this one the erasures of topic %q would have %d bytes of users and filters and %d comparisons, the limits are %d and %d; name users and no filter where that says the same, and `almanac erase forget` those that no stream needs any more",
			ErrLedgerFull, e.Topic, size, terms, ledger.MaxTopicBytes, ledger.MaxTerms)
	}
	data, err := json.Marshal(&e)
	if err != nil {
		return e, err
	}
	if len(data) > ledger.MaxErasureBytes {
		return e, fmt.Errorf("%w: the erasure has %d bytes, the limit is %d; split it", ErrLedgerFull, len(data), ledger.MaxErasureBytes)
	}
	c := &change{key: e.Key(), v: &e}
	if err = r.enterAs(ctx, []string{e.Topic}, map[string]int{e.Topic: e.Schema}, c); err == nil {
		e.Rev = c.rev
	}
	return e, err
}

// AmendErasure changes an entry by compare-and-set until f, on a fresh reading,
// sees nothing to change.
func (r *Registry) AmendErasure(ctx context.Context, topic, id string, f func(*ledger.Erasure) (changed bool)) (ledger.Erasure, error) {
	return amend(ctx, r, func() (ledger.Erasure, error) { return r.Erasure(ctx, topic, id) }, f)
}
