package documents

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Of many lockers at once one gets the lock, and the others are told who holds it.
func TestLockAtOnce(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	locks, errs := make([]*Lock, 8), make([]error, 8)
	var wg sync.WaitGroup
	for i := range locks {
		wg.Go(func() { locks[i], errs[i] = c.Lock(ctx, "a", string(rune('a'+i)), time.Minute) })
	}
	wg.Wait()
	var won *Lock
	for _, l := range locks {
		if l != nil && won != nil {
			t.Fatalf("%+v and %+v are held", won, l)
		} else if l != nil {
			won = l
		}
	}
	if won == nil {
		t.Fatal(errs)
	}
	for _, err := range errs {
		var held *LockError
		if err != nil && (!errors.As(err, &held) || !errors.Is(err, ErrLocked) || held.Holder == nil || held.Holder.Token != won.Token || held.Holder.By != won.By || !held.Holder.Until.Equal(won.Until)) {
			t.Errorf("%v; expected that %+v is held", err, won)
		}
	}
	if l, err := c.Locked(ctx, "a"); err != nil || *l != *won {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := c.Locked(ctx, "b"); err != nil || l != nil {
		t.Errorf("another id: %+v, %v", l, err)
	}
}

// A lock that is renewed keeps its token and lasts longer; one that is released is free at
// once, and the next has a higher token.
func TestLockLife(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	first, err := c.Lock(ctx, "a", "one", 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Renew(ctx, "a", first.Token, 30*time.Minute)
	if err != nil || again.Token != first.Token || again.By != "one" || !again.Until.After(first.Until.Add(15*time.Minute)) {
		t.Fatalf("%+v after %+v, %v", again, first, err)
	}
	if locks, err := c.Locks(ctx); err != nil || len(locks) != 1 || *locks[0] != *again {
		t.Errorf("%+v, %v", locks, err)
	}
	if err := c.Unlock(ctx, "a", first.Token+1); !errors.Is(err, ErrLocked) {
		t.Errorf("released by another token: %v", err)
	}
	if err := c.Unlock(ctx, "a", first.Token); err != nil {
		t.Fatal(err)
	}
	if locks, err := c.Locks(ctx); err != nil || len(locks) != 0 {
		t.Errorf("%+v, %v", locks, err)
	}
	for what, err := range map[string]error{
		"released twice": c.Unlock(ctx, "a", first.Token),
		"renewed":        func() error { _, err := c.Renew(ctx, "a", first.Token, time.Minute); return err }(),
	} {
		t.Run(what, func(t *testing.T) {
			var lost *LockError
			if !errors.As(err, &lost) || lost.Holder != nil || lost.Token != first.Token {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	second, err := c.Lock(ctx, "a", "two", time.Minute)
	if err != nil || second.Token <= first.Token {
		t.Fatalf("%+v after %+v, %v", second, first, err)
	}
	if err := c.Unlock(ctx, "a", AnyLock); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"too short": func() error { _, err := c.Lock(ctx, "x", "", time.Millisecond); return err }(),
		"too long":  func() error { _, err := c.Lock(ctx, "x", "", 2*time.Hour); return err }(),
		"a name":    func() error { _, err := c.Lock(ctx, "x", "a\nb", time.Minute); return err }(),
		"long name": func() error { _, err := c.Lock(ctx, "x", strings.Repeat("x", 129), time.Minute); return err }(),
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(err, document.ErrLock) || !errors.Is(err, schemas.ErrRequest) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if _, err := c.Lock(ctx, "a.b", "", time.Minute); !errors.Is(err, document.ErrID) {
		t.Errorf("an id that is not one: %v", err)
	}
}

// expired waits until NATS has removed a lock.
func expired(ctx context.Context, t *testing.T, c *Collection, id string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		l, err := c.Locked(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if l == nil {
			return
		}
		<-tick.C
	}
}

// A holder that was paused until its lock had ended and another held it cannot write: not by
// an update, not within a batch, whatever version it names. The new holder can.
func TestPausedHolder(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	for _, id := range []string{"a", "b"} {
		if _, err := c.Create(ctx, Draft{ID: id, Body: []byte(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	d, paused, err := c.LockAndLoad(ctx, "a", "paused", time.Second)
	if err != nil || d.Version != 1 {
		t.Fatal(d, err)
	}
	expired(ctx, t, c, "a")
	late := func(when string, holder string) {
		t.Helper()
		_, err := c.Write(ctx, Op{ID: "a", If: IfVersion(1), Body: []byte(`{"late":1}`), Lock: paused.Token})
		var lost *LockError
		if !errors.As(err, &lost) || (lost.Holder == nil) != (holder == "") || lost.Holder != nil && lost.Holder.By != holder {
			t.Errorf("%s: a late write: %v", when, err)
		}
		_, err = c.Batch(ctx, Op{ID: "b", Body: []byte(`{"late":1}`)}, Op{ID: "a", Body: []byte(`{"late":1}`), Lock: paused.Token})
		var batch *BatchError
		if !errors.As(err, &batch) || !errors.Is(err, ErrLocked) || batch.Members[0].Index != 1 {
			t.Errorf("%s: a late batch: %v", when, err)
		}
	}
	late("ended", "")
	now, err := c.Lock(ctx, "a", "now", time.Minute)
	if err != nil || now.Token <= paused.Token {
		t.Fatalf("%+v, %v", now, err)
	}
	late("taken over", "now")
	for _, id := range []string{"a", "b"} {
		if d, err := c.Load(ctx, id); err != nil || d.Version != 1 {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
	}
	// A write renews the lock, and the last one releases it.
	if _, err := c.Write(ctx, Op{ID: "a", If: IfVersion(1), Body: []byte(`{"n":2}`), Lock: now.Token}); err != nil {
		t.Fatal(err)
	}
	if l, err := c.Locked(ctx, "a"); err != nil || l == nil || l.Token != now.Token || l.Until.Before(now.Until) {
		t.Errorf("after a write: %+v, %v", l, err)
	}
	if _, err := c.Batch(ctx, Op{ID: "a", Body: []byte(`{"n":3}`), Lock: now.Token, Unlock: true}, Op{Kind: Remove, ID: "b"}); err != nil {
		t.Fatal(err)
	}
	if l, err := c.Locked(ctx, "a"); err != nil || l != nil {
		t.Errorf("released with a write: %+v, %v", l, err)
	}
	if d, err := c.Load(ctx, "a"); err != nil || string(d.Body) != `{"n":3}` {
		t.Errorf("%+v, %v", d, err)
	}
	// A lock does not stop those who write without one.
	if _, err := c.Lock(ctx, "a", "x", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(ctx, "a", Always, []byte(`{}`)); err != nil {
		t.Error(err)
	}
}

// The lock that is lost between the look and the write is found by the write itself: its
// batch expects the lock's own message.
func TestLockLostInBetween(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	if _, err := c.Create(ctx, Draft{ID: "a", Body: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	l, err := c.Lock(ctx, "a", "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ops := []Op{{ID: "a", Body: []byte(`{"late":1}`), Lock: l.Token}}
	last, err := c.lastOf(ctx, ops)
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := c.validateAll(ctx, last, ops)
	if err != nil {
		t.Fatal(err)
	}
	guards, err := c.guards(ctx, ops)
	if err != nil || len(guards) != 1 {
		t.Fatal(guards, err)
	}
	if err := c.Unlock(ctx, "a", l.Token); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lock(ctx, "a", "two", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := c.w.PutAll(ctx, append([]fronts.Record{record(versions[0], last[0])}, guards...)); !errors.Is(err, fronts.ErrConflict) {
		t.Errorf("a write under a lock that was lost meanwhile: %v", err)
	}
	if d, err := c.Load(ctx, "a"); err != nil || d.Version != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// Where DOCS lost its end, the sequence of a lock is given again, and its token is not, but for one in 4,096: who held
// the lock before does not write under the other's.
func TestTokenOfSequenceGivenAgain(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	before, err := c.Lock(ctx, "a", "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	js := c.reg.JetStream()
	s, err := js.Stream(ctx, schemas.StreamDocs)
	if err != nil {
		t.Fatal(err)
	}
	now := before
	for tries := 0; now.Token == before.Token && tries < 5; tries++ {
		if err := js.DeleteStream(ctx, schemas.StreamDocs); err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateStream(ctx, s.CachedInfo().Config); err != nil {
			t.Fatal(err)
		}
		if now, err = c.Lock(ctx, "a", "two", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if now.Token == before.Token {
		t.Fatalf("%+v has the token of %+v", now, before)
	}
	held, err := c.lockOf(ctx, "a")
	if err != nil || held.Seq != 1 {
		t.Fatalf("%+v, %v: the sequence is not the one that was given before", held, err)
	}
	if _, err := c.Write(ctx, Op{ID: "a", Kind: Create, Body: []byte(`{"late":1}`), Lock: before.Token}); !errors.Is(err, ErrLocked) {
		t.Errorf("a write under the lost lock: %v", err)
	}
	if err := c.Unlock(ctx, "a", before.Token); !errors.Is(err, ErrLocked) {
		t.Errorf("the other's lock was released: %v", err)
	}
}
