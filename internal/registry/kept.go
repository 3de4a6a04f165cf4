package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// Third is a copy of the ledger outside NATS: that in ClickHouse.
type Third interface {
	// KeptLedger is all that it has, which may be LedgerStaleness old. It is not known while
	// the server is away.
	KeptLedger(ctx context.Context) (kept map[string]schemas.LedgerCopy, known bool, err error)
}

// WithThird is the registry for a part that has ClickHouse: what its copy of the ledger has newer
// counts too, also before it is entered again.
func (r *Registry) WithThird(third Third) *Registry {
	with := *r
	with.third = third
	return &with
}

// newest is what is known under the keys of the ledger that match a filter: of the entry, its
// copy and the third copy the one that was written most often. What was forgotten is left out.
// So a bucket that is lost or older hides no erasure.
func (r *Registry) newest(ctx context.Context, filter string) (map[string]written, error) {
	out, err := r.allOf(ctx, schemas.CopiesStream, schemas.CopySubject, filter)
	if lostStream(err) {
		out, err = map[string]written{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("registry: listing copies of %s: %w", filter, err)
	}
	entries, err := r.allOf(ctx, schemas.KVStream, schemas.KVSubject, filter)
	if err != nil {
		return nil, fmt.Errorf("registry: listing %s: %w", filter, err)
	}
	for key, w := range out {
		w.seq = 0 // of another stream
		out[key] = w
	}
	for key, w := range entries {
		if w.live() && w.count >= out[key].count {
			out[key] = w
		}
	}
	if r.third != nil {
		kept, known, err := r.third.KeptLedger(ctx)
		if err != nil {
			return nil, err
		}
		for key, k := range kept {
			if known && matches(filter, key) && k.Count > out[key].count {
				out[key] = written{count: k.Count, data: k.Value}
			}
		}
	}
	for key, w := range out {
		if !w.live() {
			delete(out, key)
		}
	}
	return out, nil
}

// matches reports whether a key has the filter's tokens, of which "*" is any.
func matches(filter, key string) bool {
	f, k := strings.Split(filter, "."), strings.Split(key, ".")
	if len(f) != len(k) {
		return false
	}
	for i := range f {
		if f[i] != "*" && f[i] != k[i] {
			return false
		}
	}
	return true
}

// listNewest reads the entries of the ledger that match a filter, as newest has them.
func listNewest[E ledger.Erasure | ledger.ErasureRecord | Removal](ctx context.Context, r *Registry, filter string) ([]E, error) {
	all, err := r.newest(ctx, filter)
	if err != nil {
		return nil, err
	}
	out := make([]E, 0, len(all))
	for key, w := range all {
		var e E
		if err := decode(key, w.data, &e); err != nil {
			if err = fmt.Errorf("registry: listing %s: %w", filter, err); r.odd == nil {
				return nil, err
			}
			r.odd(err)
			continue
		}
		switch e := any(&e).(type) {
		case *ledger.Erasure:
			e.Rev, e.Count = w.seq, w.count
		case *ledger.ErasureRecord:
			e.Rev, e.Count = w.seq, w.count
		}
		out = append(out, e)
	}
	return out, nil
}

// KeptHere is what the bucket and its copies have of the entries that ClickHouse has a copy of
// too, without that copy. What was forgotten has no value.
func (r *Registry) KeptHere(ctx context.Context) (map[string]schemas.LedgerCopy, error) {
	alone := *r
	alone.third = nil
	out := map[string]schemas.LedgerCopy{}
	for _, filter := range schemas.Remembered {
		copies, err := alone.allOf(ctx, schemas.CopiesStream, schemas.CopySubject, filter)
		if err != nil && !lostStream(err) {
			return nil, fmt.Errorf("registry: listing copies of %s: %w", filter, err)
		}
		for key, w := range copies {
			if !w.live() {
				out[key] = schemas.LedgerCopy{Key: key, Count: w.count}
			}
		}
		all, err := alone.newest(ctx, filter)
		if err != nil {
			return nil, err
		}
		for key, w := range all {
			out[key] = schemas.LedgerCopy{Key: key, Count: w.count, Value: w.data}
		}
	}
	return out, nil
}

// Adopt enters what the third copy has newer than the bucket and its copies. It reports whether
// it had to.
func (r *Registry) Adopt(ctx context.Context, k schemas.LedgerCopy) (bool, error) {
	copies, err := r.copiesOf(ctx, []string{k.Key})
	if err != nil {
		return false, err
	}
	entry, err := r.lastOf(ctx, schemas.KVStream, schemas.KVSubject(k.Key))
	if err != nil {
		return false, fmt.Errorf("registry: reading %s: %w", k.Key, err)
	}
	copied := copies[k.Key]
	if k.Count <= max(entry.count, copied.count) {
		return false, nil
	}
	newer := written{count: k.Count, data: k.Value}
	if err := r.copyOne(ctx, k.Key, newer, copied.seq); err != nil {
		return false, err
	}
	return true, r.putBack(ctx, k.Key, entry, newer)
}

// Behind are the erasures of each topic that have ended and that ClickHouse does not have: it
// was restored from a copy from before them, or the streams were, and ClickHouse's copy of the
// ledger alone remembers them. They are to be carried out again. Until then no reader may show
// the topic.
func (r *Registry) Behind(ctx context.Context, all map[string]ledger.Erasures) (map[string][]string, error) {
	if r.third == nil || !anyEnded(all) {
		return nil, nil
	}
	kept, known, err := r.third.KeptLedger(ctx)
	if err != nil || !known {
		return nil, err // ClickHouse shows nothing while it is away
	}
	out := map[string][]string{}
	for topic, l := range all {
		for i := range l {
			if k := kept[l[i].Key()]; l[i].Ended() && (!k.Applied || l[i].Rev == 0 && k.Count == l[i].Count) {
				out[topic] = append(out[topic], l[i].ID)
			}
		}
	}
	return out, nil
}

// UnlessBehind is ErrBehind where Behind has erasures of a topic.
func (r *Registry) UnlessBehind(ctx context.Context, topic string) error {
	l, err := r.Ledger(ctx, topic)
	if err != nil {
		return err
	}
	all, err := r.Behind(ctx, map[string]ledger.Erasures{topic: l})
	if err != nil {
		return err
	}
	return behind(topic, all[topic])
}

func anyEnded(all map[string]ledger.Erasures) bool {
	for _, l := range all {
		for i := range l {
			if l[i].Ended() {
				return true
			}
		}
	}
	return false
}

// counted are erasures of which those that ClickHouse has as applied have ended.
func (r *Registry) counted(ctx context.Context, l ledger.Erasures) (ledger.Erasures, error) {
	if r.third == nil || len(l) == 0 {
		return l, nil
	}
	kept, known, err := r.third.KeptLedger(ctx)
	if err != nil || !known {
		return l, err
	}
	out := slices.Clone(l)
	for i := range out {
		if kept[out[i].Key()].Applied {
			out[i].State = ledger.Erased
		}
	}
	return out, nil
}
