package registry

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/embedded/embeddedtest"
)

// A lease counts by this process's clock and the revision alone.
func TestSurvey(t *testing.T) {
	now := time.Now()
	seen := map[string]lease{}
	step := func(after time.Duration, leases map[string]uint64, live, dead []string) {
		t.Helper()
		now = now.Add(after)
		gotLive, gotDead := survey("me", seen, leases, now)
		if !slices.Equal(gotLive, live) || !slices.Equal(gotDead, dead) {
			t.Fatalf("live %v dead %v, want %v and %v", gotLive, gotDead, live, dead)
		}
	}
	step(0, map[string]uint64{"me": 1}, []string{"me"}, nil)
	step(time.Second, map[string]uint64{"me": 2, "you": 3}, []string{"me", "you"}, nil)
	step(LeaseExpiry-1, map[string]uint64{"me": 2, "you": 3}, []string{"me", "you"}, nil)
	step(1, map[string]uint64{"me": 2, "you": 3}, []string{"me"}, nil)
	step(1, map[string]uint64{"me": 2, "you": 9}, []string{"me", "you"}, nil)
	step(forgetAfter+1, map[string]uint64{"me": 2, "you": 9}, []string{"me"}, []string{"you"})
	step(1, map[string]uint64{"me": 2}, []string{"me"}, nil)
	if len(seen) != 0 {
		t.Errorf("still remembered: %v", seen)
	}
}

// Every key has one owner, all members agree on it, and a member that leaves
// moves only its own share.
func TestOwner(t *testing.T) {
	live := []string{"a", "b", "c", "d"}
	share := map[string]int{}
	for i := range 1000 {
		key := fmt.Sprintf("app.%d", i)
		o := owner(live, key)
		share[o]++
		if p := owner([]string{"d", "c", "b", "a"}, key); p != o {
			t.Fatalf("%s is of %s or of %s", key, o, p)
		}
		if o != "d" && owner([]string{"a", "b", "c"}, key) != o {
			t.Fatalf("%s moved though its owner stayed", key)
		}
	}
	for _, m := range live {
		if share[m] < 150 {
			t.Errorf("%s has %d of 1000 keys", m, share[m])
		}
	}
}

// A member that leaves is missed at once; one that falls silent, by its lease.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	a := r.Join(ctx, "router")
	go func() { _ = a.Run(ctx) }()
	bctx, leave := context.WithCancel(ctx)
	b := r.Join(ctx, "router")
	ended := make(chan struct{})
	go func() { _ = b.Run(bctx); close(ended) }()
	live := func(n int) {
		t.Helper()
		embeddedtest.Eventually(t, 10*time.Second, func() error {
			if got := len(a.Live()); got != n {
				return fmt.Errorf("%d members are live, want %d", got, n)
			}
			return nil
		})
	}
	live(2)
	if a.Owns("x") == b.Owns("x") {
		t.Error("x has none or two owners")
	}
	leave()
	<-ended
	live(1)
	r.Join(ctx, "router") // beats once and falls silent
	live(2)
	live(1)
}
