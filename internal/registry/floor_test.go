package registry

import (
	"errors"
	"sync"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// However many raise it, in whatever order, the floor ends at the highest and
// never stands lower than it did; what others write meanwhile stays.
func TestRaiseFloor(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	if _, err := r.RaiseFloor(ctx, schemas.ShardRef{Topic: "app", Month: november, ID: s.ID + 1}, 3); !errors.Is(err, ErrNotFound) {
		t.Errorf("a shard that was never made: %v, want it not found", err)
	}
	lo := noon.UnixNano()
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			after, err := r.RaiseFloor(ctx, s.Ref(), uint64(i+1))
			if err != nil || after.Floor < uint64(i+1) {
				t.Errorf("raised to %d, stands at %d (%v)", i+1, after.Floor, err)
			}
		})
		wg.Go(func() {
			mine := s // each router's own reading, soon an old one
			if err := r.Widen(ctx, noon, Range{Shard: &mine, Lo: lo - int64(i)*widenStep, Hi: lo, Rows: 1, Bytes: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	after, err := r.RaiseFloor(ctx, s.Ref(), 5)
	if err != nil || after.Floor != 12 {
		t.Errorf("raised to 5 after 12, stands at %d (%v)", after.Floor, err)
	}
	stands, err := r.Shard(ctx, s.Ref())
	if err != nil || stands.Floor != 12 || stands.rev != after.rev {
		t.Errorf("reads %d at revision %d, want 12 at %d (%v)", stands.Floor, stands.rev, after.rev, err)
	}
	if stands.MinTs > lo-11*widenStep || stands.MaxTs < lo {
		t.Errorf("range [%d, %d] does not cover what was widened meanwhile", stands.MinTs, stands.MaxTs)
	}
	// A rotation and its sealing keep it.
	if _, err := r.Rotate(ctx, s, "rows", Point{}, noon); err != nil {
		t.Fatal(err)
	}
	if err := r.Seal(ctx, s.Ref(), Point{}, 12, 12, 12); err != nil {
		t.Fatal(err)
	}
	if stands, err = r.Shard(ctx, s.Ref()); err != nil {
		t.Fatal(err)
	}
	if closed, err := r.Close(ctx, stands, 12, lo, lo); err != nil || !closed {
		t.Fatalf("%v, %v", closed, err)
	}
	if stands, err = r.Shard(ctx, s.Ref()); err != nil || stands.Floor != 12 || stands.Status != Closed {
		t.Errorf("closed: %+v (%v)", stands, err)
	}
}
