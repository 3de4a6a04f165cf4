package registry

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Retention and a drop of what is derived from a shard exclude each other, in whatever order
// they come.
func TestUnless(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	if err := errors.Join(r.Retire(ctx, s), r.Seal(ctx, s.Ref(), 7, 100, 1000)); err != nil {
		t.Fatal(err)
	}
	read := func() Shard {
		t.Helper()
		s, err := r.Shard(ctx, s.Ref())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if closed, err := r.Close(ctx, read(), 100, noon.UnixNano(), noon.UnixNano()); err != nil || !closed {
		t.Fatalf("%v, %v", closed, err)
	}
	mark := func(s Shard) error {
		_, err := r.MarkDropping(ctx, s, 100, "kept 1 days", noon)
		return err
	}
	dropped, before := r.Dropped(s.Topic), read()
	drops := 0
	again := func(context.Context) error { drops++; return nil }
	err := dropped.Unless(ctx, s.Ref(), func(ctx context.Context) error {
		if err := mark(before); !errors.Is(err, ErrConflict) {
			t.Errorf("with an entry from before the mark: %v", err)
		}
		// Another that ends meanwhile does not take this one's mark away.
		if err := dropped.Unless(ctx, s.Ref(), again); err != nil {
			return err
		}
		if err := mark(read()); !errors.Is(err, ErrConflict) {
			t.Errorf("while the mark stands: %v", err)
		}
		return nil
	})
	if err != nil || drops != 1 {
		t.Fatalf("%d drops, %v", drops, err)
	}
	if err := mark(before); !errors.Is(err, ErrConflict) {
		t.Errorf("with an entry from before the drop: %v", err)
	}
	// One that failed may still run.
	if err := dropped.Unless(ctx, s.Ref(), func(context.Context) error { return context.Canceled }); !errors.Is(err, context.Canceled) {
		t.Errorf("a drop that fails: %v", err)
	}
	failed := read()
	if err := mark(failed); !errors.Is(err, ErrConflict) || !failed.Rederiving(time.Now()) || failed.Rederiving(time.Now().Add(rederiveLapse)) {
		t.Errorf("after a drop that failed: %v, %v", err, failed.Rederives)
	}
	if _, err := r.amend(ctx, s.Ref(), func(s *Shard) bool {
		for of := range s.Rederives {
			s.Rederives[of] = time.Now().Add(-rederiveLapse)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if err := mark(read()); err != nil {
		t.Errorf("after the mark lapsed: %v", err)
	}
	if err := dropped.Unless(ctx, s.Ref(), again); err != nil || drops != 1 {
		t.Errorf("after MarkDropping: %d drops, %v", drops, err)
	}
}
