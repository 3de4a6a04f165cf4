package sinks

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// An erasure ends while an insert waits for its turn, with frames that it means: a ClickHouse from an older copy is filled again.
// None of their rows is stored, and the floor says that they were.
func TestErasureEndsBeforeAnInsert(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e, err := r.Registry.Enter(t.Context(), ledger.Erasure{
		ID: "erased-1", Topic: "app", Users: []string{"u"}, To: math.MaxInt64, Cond: ledger.OfUsers("p1", "1"), Params: map[string]string{"p1": "['u']"},
		Schema: 1, Fence: 1000, State: ledger.Erasing,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Add(10, nil)
	r.Add(10, nil)
	var s *Sinks
	var once sync.Once
	var stored atomic.Uint64
	hooks := Hooks{Stored: func(_ schemas.ShardRef, rows, _ uint64, _ time.Duration) { stored.Add(rows) }}
	s, err = New(t.Context(), r.Servers.NC(), Config{Registry: r.Registry, DB: r.DB, Hooks: hooks, Crash: func(point string) {
		if point == "sink.before-insert" {
			once.Do(func() {
				if _, err := r.Registry.AmendErasure(t.Context(), "app", e.ID, func(e *ledger.Erasure) bool { e.State = ledger.Erased; return true }); err != nil {
					t.Error(err)
				}
				embeddedtest.Eventually(t, maxQueueWait, func() error { // what the sink knows of the ledger may be old
					if now, err := s.ledger.ForWriter(t.Context(), "app"); err != nil || now[0].State == ledger.Erased {
						return err
					}
					return errors.New("the sink does not know that the erasure has ended")
				})
			})
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = s.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	embeddedtest.Eventually(t, maxQueueWait, func() error {
		entry, err := r.Registry.Shard(t.Context(), schemas.ShardRef{Topic: "app", Month: november, ID: r.Shard.ID})
		if err == nil && entry.Floor < 2 && stored.Load() == 0 {
			err = errors.New("the floor does not say that the frames are dealt with")
		}
		return err
	})
	if n := stored.Load(); n > 0 {
		t.Errorf("%d rows are stored of an erasure that has ended", n)
	}
}
