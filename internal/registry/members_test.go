package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A lease counts by this process's clock and the revision alone, and not while
// this process saw nothing.
func TestSurvey(t *testing.T) {
	now := time.Now()
	seen := map[string]lease{}
	step := func(after, blind time.Duration, leases map[string]uint64, live, silent []string) {
		t.Helper()
		now = now.Add(after)
		gotLive, gotSilent := survey("me", seen, leases, now, blind)
		if !slices.Equal(gotLive, live) || !slices.Equal(gotSilent, silent) {
			t.Fatalf("live %v silent %v, want %v and %v", gotLive, gotSilent, live, silent)
		}
	}
	me, both, you := []string{"me"}, []string{"me", "you"}, []string{"you"}
	step(0, 0, map[string]uint64{"me": 1}, me, nil)
	step(time.Second, 0, map[string]uint64{"me": 2, "you": 3}, both, nil)
	step(LeaseExpiry-1, 0, map[string]uint64{"me": 2, "you": 3}, both, you)
	step(1, 0, map[string]uint64{"me": 2, "you": 3}, me, nil)
	step(1, 0, map[string]uint64{"me": 2, "you": 9}, both, nil)
	step(time.Hour, time.Hour, map[string]uint64{"me": 2, "you": 9}, both, nil)
	step(LeasePeriod, 0, map[string]uint64{"me": 2, "you": 9}, both, you)
	seen["you"] = lease{rev: 9, at: seen["you"].at, gone: true} // no process answered the probe
	step(1, 0, map[string]uint64{"me": 2, "you": 9}, me, nil)
	step(1, 0, map[string]uint64{"me": 2, "you": 10}, both, nil)
	step(forgetAfter+1, 0, map[string]uint64{"me": 2, "you": 10}, me, nil)
	step(1, 0, map[string]uint64{"me": 2}, me, nil)
	if len(seen) != 0 {
		t.Errorf("still remembered: %v", seen)
	}
}

// After an outage of its own a member does not call another dead for what it did not see.
func TestBlindFor(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		last        time.Time
		reconnected bool
		want        time.Duration
	}{
		{time.Time{}, true, 0},
		{now.Add(-LeasePeriod), false, 0},
		{now.Add(-LeasePeriod), true, LeasePeriod},
		{now.Add(-2 * LeaseExpiry), false, 2 * LeaseExpiry},
	} {
		if got := blindFor(c.last, now, c.reconnected); got != c.want {
			t.Errorf("since %s, reconnected %t: %s, want %s", now.Sub(c.last), c.reconnected, got, c.want)
		}
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
		embeddedtest.Eventually(t, maxWait, func() error {
			if got := len(a.Live()); got != n {
				return fmt.Errorf("%d members are live, want %d", got, n)
			}
			return nil
		})
	}
	live(2)
	embeddedtest.Eventually(t, maxWait, func() error { // once both know of each other
		if a.Owns("x") == b.Owns("x") {
			return errors.New("x does not have exactly one owner")
		}
		return nil
	})
	leave()
	<-ended
	live(1)
	r.Join(ctx, "router") // beats once and falls silent, its door open
	live(2)
	live(1)
}

// A member whose process died is missed because its door is gone, long before its
// lease.
func TestDeadMemberIsMissedSoon(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	a := r.Join(ctx, "sink")
	theirs, err := nats.Connect(r.js.Conn().ConnectedUrl(), nats.Timeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(ctx, theirs)
	if err != nil {
		t.Fatal(err)
	}
	b := other.Join(ctx, "sink")
	look := func() { a.beat(ctx) }
	if look(); len(a.Live()) != 2 {
		t.Fatalf("live: %v, want both", a.Live())
	}
	silent := func() { // as if its last beat were a period ago, and no longer
		l := a.seen[b.self]
		l.at = time.Now().Add(-LeasePeriod)
		a.seen[b.self] = l
	}
	if silent(); a.unreachable(ctx, b.self) {
		t.Error("a live member is reported unreachable")
	}
	if look(); len(a.Live()) != 2 {
		t.Errorf("live: %v, though both answer", a.Live())
	}
	theirs.Close() // as the kernel does for a process that dies
	embeddedtest.Eventually(t, maxWait, func() error {
		silent()
		if look(); len(a.Live()) != 1 {
			return fmt.Errorf("live: %v", a.Live())
		}
		return nil
	})
	if other, err = Open(ctx, r.js.Conn()); err != nil {
		t.Fatal(err)
	}
	b.reg = other // it was only cut off: its next beat brings it back
	b.beat(ctx)
	if look(); len(a.Live()) != 2 {
		t.Errorf("live: %v, want both again", a.Live())
	}
}

// A probe leaves nothing.
func TestProbe(t *testing.T) {
	t.Parallel()
	r := open(t)
	if err := streams.Probe(timeout(t), r.js); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		return r.scan(timeout(t), schemas.AllLeases, func(key string, _ uint64, _ []byte) error { return fmt.Errorf("%s is left", key) })
	})
}
