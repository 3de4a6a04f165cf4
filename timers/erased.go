package timers

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

// An erasure hides the timers that it means from its entry on, also before it has reached TIMERS. Once it has
// ended, neither TIMERS nor ClickHouse has any of it, unless TIMERS is an older copy: so one that has ended hides as well.

// erasing are the erasures of the topic that are under way, and all of them.
func (t *Timers) erasing(ctx context.Context) (under, all ledger.Cover, err error) {
	l, err := t.ledger.Of(ctx, t.topic.Name)
	if err != nil {
		return nil, nil, err
	}
	return ledger.Cover(l.Only(ledger.Waiting, ledger.Erasing)), ledger.Cover(l), nil
}

// visible leaves out the records of timers that an erasure means: by themselves, or, while it is under way, by what is
// stored of their present life. Without an Archive those alone are known that no filter must evaluate.
func (t *Timers) visible(ctx context.Context, records []*timer.Record) ([]*timer.Record, error) {
	under, all, err := t.erasing(ctx)
	if err != nil || len(all) == 0 || len(records) == 0 {
		return records, err
	}
	out := slices.Clone(records)
	for i := range all {
		if out, err = t.without(ctx, &all[i], out); err != nil {
			return nil, err
		}
	}
	if len(under) == 0 || t.cfg.Archive == nil {
		return out, nil
	}
	gone, err := t.cfg.Archive.MeantLives(ctx, t.topic.Name, out, under)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(r *timer.Record) bool { return gone[r.Life] }), nil
}

// without leaves out the records that an erasure means by what they say themselves.
func (t *Timers) without(ctx context.Context, e *ledger.Erasure, records []*timer.Record) ([]*timer.Record, error) {
	may := func(r *timer.Record) bool { return e.MayMean(r.Seq, r.Changed, r.User) }
	if e.Where == "" {
		return slices.DeleteFunc(records, may), nil
	}
	var ask []*timer.Record
	for _, r := range records {
		if may(r) {
			ask = append(ask, r)
		}
	}
	if len(ask) == 0 || t.cfg.Archive == nil {
		return records, nil
	}
	if slices.Contains(e.Columns(), kinds.ColSpec) {
		for i, r := range ask {
			with, err := t.withSpec(ctx, r)
			if err != nil {
				return nil, err
			}
			ask[i] = with
		}
	}
	meant, err := t.cfg.Archive.MeantRecords(ctx, &t.topic, e, ask)
	if err != nil {
		return nil, err
	}
	gone := map[uint64]bool{}
	for i, r := range ask {
		gone[r.Seq] = meant[i]
	}
	return slices.DeleteFunc(records, func(r *timer.Record) bool { return gone[r.Seq] }), nil
}

// withSpec is a record, read by its headers, with the spec that it holds itself.
func (t *Timers) withSpec(ctx context.Context, r *timer.Record) (*timer.Record, error) {
	if r.SpecSeq != 0 || r.Spec != nil {
		return r, nil
	}
	m, err := streams.DecideAt(ctx, t.js, schemas.StreamTimers, r.Seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	whole, err := timer.Parse(m.Subject, m.Sequence, m.Header, m.Data)
	return &whole, err
}

// hidden reports whether an erasure means a timer.
func (t *Timers) hidden(ctx context.Context, r *timer.Record) (bool, error) {
	left, err := t.visible(ctx, []*timer.Record{r})
	return len(left) == 0, err
}
