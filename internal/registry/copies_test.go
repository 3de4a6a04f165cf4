package registry

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Which of an entry and its copy is newer.
func TestCompareCopies(t *testing.T) {
	t.Parallel()
	data, other := []byte("{}"), []byte(`{"a":1}`)
	for name, c := range map[string]struct {
		entry, copied written
		want          step
	}{
		"neither":                        {written{}, written{}, agree},
		"equal":                          {written{3, 9, data}, written{3, 5, data}, agree},
		"no copy":                        {written{3, 9, data}, written{}, copyUp},
		"an older copy":                  {written{3, 9, data}, written{2, 5, other}, copyUp},
		"the entry lost":                 {written{}, written{1, 5, data}, putBack},
		"the entry older":                {written{2, 9, data}, written{3, 5, other}, putBack},
		"the entry written by hand":      {written{0, 9, other}, written{1, 5, data}, putBack},
		"deleted by hand":                {written{0, 9, nil}, written{1, 5, data}, putBack},
		"forgotten":                      {written{}, written{4, 5, nil}, agree},
		"forgotten, and an older bucket": {written{3, 9, data}, written{4, 5, nil}, putBack},
		"entered again after that":       {written{5, 9, data}, written{4, 5, nil}, copyUp},
	} {
		t.Run(name, func(t *testing.T) {
			if got := compare(c.entry, c.copied); got != c.want {
				t.Errorf("%s: step %d, want %d", name, got, c.want)
			}
		})
	}
}

// older puts back what a bucket had: its entries as they were, under new revisions, and nothing
// else. It is what a bucket restored from a copy is like.
func older(t *testing.T, r *Registry, stream string, was map[string]written) {
	t.Helper()
	subject := schemas.KVSubject
	if stream == schemas.CopiesStream {
		subject = schemas.CopySubject
	}
	if err := streams.Purge(t.Context(), r.js, stream, subject(">"), streams.Refuse); err != nil {
		t.Fatal(err)
	}
	for key, w := range was {
		m := copyMsg(key, w, 0)
		m.Subject = subject(key)
		if _, err := r.js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// A bucket that was lost, or is an older copy, gets every entry back from the copies, and copies
// that were lost or are older every entry from the bucket: descriptors, shards, groups and the
// ledger. What was forgotten stays forgotten.
func TestReconcile(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	app := schemas.NewTopic("app")
	if _, _, err := r.Apply(ctx, app, false); err != nil {
		t.Fatal(err)
	}
	enter := func(id string) {
		t.Helper()
		if _, err := r.Enter(ctx, ledger.Erasure{ID: id, Topic: "app", State: ledger.Waiting}); err != nil {
			t.Fatal(err)
		}
	}
	end := func(id string) {
		t.Helper()
		if _, err := r.AmendErasure(ctx, "app", id, func(e *ledger.Erasure) bool { e.State = ledger.Erased; return true }); err != nil {
			t.Fatal(err)
		}
	}
	enter("early")
	enter("forgotten")
	end("forgotten")
	sides := map[string]func(string) string{schemas.KVStream: schemas.KVSubject, schemas.CopiesStream: schemas.CopySubject}
	was := map[string]map[string]written{}
	for stream, subject := range sides {
		var err error
		if was[stream], err = r.allOf(ctx, stream, subject, ">"); err != nil {
			t.Fatal(err)
		}
	}
	// The bucket keeps no trace of what is forgotten, so that older copies bring it back until
	// ClickHouse's tombstone is met: what is erased is erased twice then, which is safe.
	delete(was[schemas.CopiesStream], schemas.LedgerKey("app", "forgotten"))
	end("early")
	enter("late")
	if err := r.ForgetErasure(ctx, "app", "forgotten"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.AmendTimerGroup(ctx, "timers", "g", func(g *timer.Group) error { g.Slots = 16; return nil }); err != nil {
		t.Fatal(err)
	}
	if app.KeepDays = 7; second(r.Apply(ctx, app, false)) != Changed {
		t.Fatal("nothing changed")
	}
	same := func(when string) {
		t.Helper()
		l, err := r.Ledger(ctx, "app")
		if err != nil || len(l) != 2 {
			t.Errorf("%s: %+v, %v", when, l, err)
		}
		for _, e := range l {
			if (e.ID == "early") != (e.State == ledger.Erased) || e.ID == "forgotten" {
				t.Errorf("%s: %+v", when, e)
			}
		}
		if now, err := r.Topic(ctx, "app"); err != nil || now.KeepDays != 7 {
			t.Errorf("%s: %+v, %v", when, now, err)
		}
		if g, err := r.TimerGroup(ctx, "timers", "g"); err != nil || g.Slots != 16 {
			t.Errorf("%s: %+v, %v", when, g, err)
		}
		if now, err := r.Shard(ctx, s.Ref()); err != nil || now.ID != s.ID {
			t.Errorf("%s: %+v, %v", when, now, err)
		}
	}
	// The bucket first: copies that were lost know nothing of what is forgotten, so a bucket that is lost after them, and then
	// is an older one, brings it back, as above.
	for _, stream := range []string{schemas.KVStream, schemas.CopiesStream} {
		for name, entries := range map[string]map[string]written{"lost": nil, "older": was[stream]} {
			older(t, r, stream, entries)
			if l, err := r.Ledger(ctx, "app"); err != nil || len(l) != 2 {
				t.Errorf("%s %s, before it is restored: %+v, %v", stream, name, l, err)
			}
			if _, err := r.Reconcile(ctx); err != nil {
				t.Fatal(err)
			}
			same(stream + " " + name)
			if back, err := r.Reconcile(ctx); err != nil || back != 0 {
				t.Errorf("%s %s: %d entries were restored twice (%v)", stream, name, back, err)
			}
		}
	}
	if err := r.js.DeleteKeyValue(ctx, schemas.BucketCopies); err != nil {
		t.Fatal(err)
	}
	enter("again") // the next change makes the copies again
	if _, err := r.lastOf(ctx, schemas.CopiesStream, schemas.CopySubject(schemas.TopicKey("app"))); err != nil {
		t.Errorf("the copies were not made again: %v", err)
	}
	if err := r.js.DeleteKeyValue(ctx, schemas.Bucket); err != nil {
		t.Fatal(err)
	}
	if _, err := Setup(ctx, r.js.Conn(), testLimits); err != nil {
		t.Fatal(err)
	}
	if l, err := r.Ledger(ctx, "app"); err != nil || len(l) != 3 {
		t.Errorf("the bucket deleted: %+v, %v", l, err)
	}
}

func second[A, B any](_ A, b B, err error) B {
	if err != nil {
		panic(err)
	}
	return b
}

// Writers of the same entries, while either bucket goes back to an older copy at any moment, lose
// no change that was acknowledged.
func TestCopiesUnderWriters(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	const writers, each = 4, 15
	var mu sync.Mutex
	acked := uint64(0)
	for round := range 4 {
		// The bucket alone goes back, or the copies alone: of both at once nothing tells.
		stream, subject := schemas.KVStream, schemas.KVSubject
		if round%2 == 1 {
			stream, subject = schemas.CopiesStream, schemas.CopySubject
		}
		was, err := r.allOf(ctx, stream, subject, ">")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range each {
					if _, err := r.RaiseRows(ctx, s.Ref()); err == nil {
						mu.Lock()
						acked++
						mu.Unlock()
					} else if !errors.Is(err, ErrConflict) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if rnd.IntN(2) == 0 {
			was = nil // lost
		}
		older(t, r, stream, was)
	}
	if _, err := r.Reconcile(ctx); err != nil {
		t.Fatal(err)
	}
	if now, err := r.Shard(ctx, s.Ref()); err != nil || now.Rows != acked {
		t.Errorf("%d changes were acknowledged, the entry has %d (%v)", acked, now.Rows, err)
	}
}

// RaiseRows counts a shard's rows up by one.
func (r *Registry) RaiseRows(ctx context.Context, ref schemas.ShardRef) (Shard, error) {
	return r.amend(ctx, ref, func(s *Shard) bool { s.Rows++; return true })
}
