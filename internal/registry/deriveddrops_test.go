package registry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// seen reads which drops are under way of what is derived from topic app.
func seen(t *testing.T, r *Registry) DerivedDrops {
	t.Helper()
	d, err := r.DerivedDrops(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Retention and a drop of what is derived from a topic exclude each other, in whatever order
// they come.
func TestWhile(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	if err := errors.Join(r.Retire(ctx, s), r.Seal(ctx, s.Ref(), Point{}, 7, 100, 1000)); err != nil {
		t.Fatal(err)
	}
	s, err := r.Shard(ctx, s.Ref())
	if err != nil {
		t.Fatal(err)
	}
	if closed, err := r.Close(ctx, s, 100, noon.UnixNano(), noon.UnixNano()); err != nil || !closed {
		t.Fatalf("%v, %v", closed, err)
	}
	mark := func(seen DerivedDrops) error {
		_, err := r.MarkDropping(ctx, s.Ref(), seen, 100, "kept 1 days", noon)
		return err
	}
	type shards = map[schemas.ShardRef]bool
	dropped, before := r.DerivedDropper(s.Topic), seen(t, r)
	nothing := func(context.Context, shards) error { return nil }
	drops := 0
	err = dropped.While(ctx, func(ctx context.Context, gone shards) error {
		drops++
		if len(gone) > 0 {
			t.Errorf("nothing is dropped: %v", gone)
		}
		if err := mark(before); !errors.Is(err, ErrConflict) {
			t.Errorf("seen before the lease: %v", err)
		}
		// Another that ends meanwhile does not give this one's lease back.
		if err := dropped.While(ctx, nothing); err != nil {
			return err
		}
		if err := mark(seen(t, r)); !errors.Is(err, ErrConflict) {
			t.Errorf("while the lease is held: %v", err)
		}
		return nil
	})
	if err != nil || drops != 1 {
		t.Fatalf("%d drops, %v", drops, err)
	}
	if err := mark(before); !errors.Is(err, ErrConflict) {
		t.Errorf("seen before the drop: %v", err)
	}
	// One that failed may still run.
	if err := dropped.While(ctx, func(context.Context, shards) error { return context.Canceled }); !errors.Is(err, context.Canceled) {
		t.Errorf("a drop that fails: %v", err)
	}
	if failed := seen(t, r); !errors.Is(mark(failed), ErrConflict) || len(failed.live(time.Now())) != 1 || len(failed.live(time.Now().Add(derivedDropLapse))) != 0 {
		t.Errorf("after a drop that failed: %v", failed.Drops)
	}
	if _, err := dropped.amend(ctx, func(d *DerivedDrops) bool {
		for of := range d.Drops {
			d.Drops[of] = time.Now().Add(-derivedDropLapse)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if err := mark(seen(t, r)); err != nil {
		t.Errorf("after the lease lapsed: %v", err)
	}
	if err := dropped.While(ctx, func(_ context.Context, gone shards) error {
		if !gone[s.Ref()] {
			t.Errorf("the shard is dropped: %v", gone)
		}
		return nil
	}); err != nil {
		t.Errorf("after MarkDropping: %v", err)
	}
}

// A drop renews its lease as long as it runs, and is given up when it cannot before the lease lapses.
func TestRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		renewals := 0
		err := renewed(t.Context(), func(context.Context) error { renewals++; return nil }, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(2*derivedDropLapse + 1):
				return nil
			}
		})
		if want := int(2 * derivedDropLapse / derivedDropBeat); err != nil || renewals != want {
			t.Errorf("%d renewals of %d, %v", renewals, want, err)
		}
		began := time.Now()
		away := errors.New("no server answers")
		err = renewed(t.Context(), func(ctx context.Context) error {
			<-ctx.Done() // it waits as long as it may
			return away
		}, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); !errors.Is(err, away) || !errors.Is(err, context.Canceled) || took != derivedDropTime {
			t.Errorf("without a renewal given up after %s: %v", took, err)
		}
	})
}
