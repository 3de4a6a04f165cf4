package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// A drop holds a lease, which it renews every derivedDropBeat. Without a renewal it is given up after
// derivedDropTime, and after derivedDropLapse its lease no longer keeps retention waiting. What is
// between the two is for a statement that was sent before: ClickHouse waits 120 s at most for
// the merges of a partition (lock_acquire_timeout), and clocks differ.
const (
	derivedDropBeat  = 10 * time.Second
	derivedDropTime  = 40 * time.Second
	derivedDropLapse = 3 * time.Minute
)

// DerivedDrops are the drops under way of what is derived from a topic's rows.
type DerivedDrops struct {
	// Drops are when each renewed its lease.
	Drops map[string]time.Time `json:"drops,omitempty"`

	topic string
	rev   uint64
}

// live are the leases that have not lapsed.
func (d *DerivedDrops) live(now time.Time) map[string]time.Time {
	out := maps.Clone(d.Drops)
	maps.DeleteFunc(out, func(_ string, at time.Time) bool { return now.Sub(at) >= derivedDropLapse })
	return out
}

// DerivedDrops reads the drops under way of what is derived from a topic's rows. Retention reads it before
// it looks whether a shard may go; see DerivedDropper.While.
func (r *Registry) DerivedDrops(ctx context.Context, topic string) (DerivedDrops, error) {
	d := DerivedDrops{topic: topic}
	rev, err := r.get(ctx, schemas.DerivedDropsKey(topic), &d)
	d.rev = rev
	if errors.Is(err, ErrNotFound) { // none was ever begun
		err = nil
	}
	return d, err
}

// DerivedDropper keeps retention from dropping shards of a topic while what is derived from the
// topic's rows is dropped.
type DerivedDropper struct {
	r     *Registry
	topic string
}

// DerivedDropper returns that of a topic.
func (r *Registry) DerivedDropper(topic string) DerivedDropper { return DerivedDropper{r, topic} }

// While drops what is derived from rows of the topic, while retention drops none. gone are the
// shards whose rows it dropped before, or is dropping. A lease in the topic's entry of drops
// excludes the two:
//
//	a drop:     take a lease ─▶ read what is gone ─▶ drop ─▶ give the lease back
//	retention:  read the leases ─▶ see that all is derived ─▶ MarkDropping, if the leases are as they were read
//
// A lease that was taken and given back before retention read: what retention saw to be derived
// is that of after. One that is held: retention waits. One that is taken, or taken and given back,
// between: MarkDropping is a conflict. One that is taken after MarkDropping: the shard is among gone.
//
// Each drop has a lease of its own. That of a drop which failed or died stays until it lapses: what
// it sent last may still run. What remains is a process that stops for longer than that just
// before it sends a statement.
func (d DerivedDropper) While(ctx context.Context, drop func(ctx context.Context, gone map[schemas.ShardRef]bool) error) error {
	token := fmt.Sprintf("%016x", rand.Uint64())
	if err := d.renew(ctx, token); err != nil {
		return err
	}
	entries, err := d.r.Shards(ctx, d.topic, 0)
	if err == nil {
		renew := func(ctx context.Context) error { return d.renew(ctx, token) }
		err = renewed(ctx, renew, func(ctx context.Context) error { return drop(ctx, DroppedOf(entries)) })
	}
	if err != nil {
		return fmt.Errorf("dropping what is derived from topic %q: %w", d.topic, err)
	}
	_, err = d.amend(ctx, func(m *DerivedDrops) bool {
		_, held := m.Drops[token]
		delete(m.Drops, token)
		return held
	})
	return err
}

func (d DerivedDropper) amend(ctx context.Context, f func(*DerivedDrops) bool) (DerivedDrops, error) {
	return amend(ctx, d.r, func() (DerivedDrops, error) { return d.r.DerivedDrops(ctx, d.topic) }, f)
}

// renew takes a lease, or renews it.
func (d DerivedDropper) renew(ctx context.Context, token string) error {
	_, err := d.amend(ctx, func(m *DerivedDrops) bool {
		now := time.Now().UTC()
		if m.Drops = m.live(now); m.Drops == nil {
			m.Drops = map[string]time.Time{}
		}
		m.Drops[token] = now
		return true
	})
	return err
}

// renewed runs drop and renews its lease meanwhile. It ends drop's context when that could not be
// done for derivedDropTime.
func renewed(ctx context.Context, renew, drop func(context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil) // where drop panics
	var wg sync.WaitGroup
	wg.Go(func() {
		tick, last := time.NewTicker(derivedDropBeat), time.Now()
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			began := time.Now()
			bounded, cancel := context.WithDeadline(ctx, last.Add(derivedDropTime))
			err := renew(bounded)
			cancel()
			if err == nil {
				last = began
			} else if time.Since(last) >= derivedDropTime {
				end(fmt.Errorf("given up because its lease in the registry could not be renewed for %s: %w", derivedDropTime, err))
				return
			}
		}
	})
	err := drop(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = errors.Join(err, cause)
	}
	end(nil)
	wg.Wait()
	return err
}
