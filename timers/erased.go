package timers

import (
	"context"
	"slices"

	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas/timer"
)

// An erasure hides the timers that it means from its entry on, also before it has reached TIMERS. Once it has
// ended, neither TIMERS nor ClickHouse has any of it.

// erasing are the erasures of the topic that are under way, and those that have ended: TIMERS may
// be an older copy.
func (t *Timers) erasing(ctx context.Context) (under, ended ledger.Cover, err error) {
	l, err := t.ledger.Of(ctx, t.topic.Name)
	if err != nil {
		return nil, nil, err
	}
	return ledger.Cover(l.Only(ledger.Settling, ledger.Erasing)), ledger.Cover(l.Only(ledger.Erased)), nil
}

// meant reports whether an erasure means a record by what the record itself says: its user and its time.
func meant(under ledger.Cover, r *timer.Record) bool {
	return slices.ContainsFunc(under, func(e ledger.Erasure) bool {
		return e.Front != "" && e.Where == "" && r.Seq <= e.Fence && r.Changed >= e.From && r.Changed <= e.To && slices.Contains(e.Users, r.User)
	})
}

// visible leaves out the records of timers that an erasure under way means: by themselves, or by what is stored of
// their present life. Without an Archive the latter is not known.
func (t *Timers) visible(ctx context.Context, records []*timer.Record) ([]*timer.Record, error) {
	under, ended, err := t.erasing(ctx)
	if err != nil || len(under)+len(ended) == 0 || len(records) == 0 {
		return records, err
	}
	out := make([]*timer.Record, 0, len(records))
	for _, r := range records {
		if !meant(under, r) && !meant(ended, r) {
			out = append(out, r)
		}
	}
	if len(under) == 0 {
		return out, nil
	}
	if t.cfg.Archive == nil {
		return out, nil
	}
	lives := make([]string, len(out))
	for i, r := range out {
		lives[i] = r.Life.String()
	}
	gone, err := t.cfg.Archive.MeantLives(ctx, t.topic.Name, lives, under)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(r *timer.Record) bool { return gone[r.Life.String()] }), nil
}

// hidden reports whether an erasure under way means a timer.
func (t *Timers) hidden(ctx context.Context, r *timer.Record) (bool, error) {
	left, err := t.visible(ctx, []*timer.Record{r})
	return len(left) == 0, err
}
