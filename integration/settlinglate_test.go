package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// waitingErasure is a topic with an erasure that was killed while it settled. Its fence lies within a
// shard: the frame at it was routed after the erasure was entered.
type waitingErasure struct {
	*env
	x     *erasure.Eraser
	first ledger.Erasure
}

func startWaiting(t *testing.T) *waitingErasure {
	t.Helper()
	e := start(t, oneLane("app", 100_000))
	stop := e.router()
	e.sink()
	h := &waitingErasure{env: e, x: e.eraser()}
	h.log("u-1", 10)
	h.stored("app", 10, 30*time.Second)
	stop()
	h.log("u-1", 5)
	h.log("u-7", 3)
	h.first = h.begin("u-1")
	h.router()
	h.log("u-1", 2) // above the fence: it stays
	h.log("u-7", 4)
	h.log("u-2", 1)
	h.stored("app", 25, 30*time.Second)
	return h
}

// log sends events of a user as one frame.
func (h *waitingErasure) log(user string, times int) {
	h.t.Helper()
	p := h.producer("app", wholeFrames)
	for range times {
		p.Log(producer.Event{Time: feb(7, 1000), UserID: user})
	}
	h.flush(p)
}

func (h *waitingErasure) begin(user string) ledger.Erasure {
	h.t.Helper()
	job, err := h.x.Start(h.t.Context(), erasure.Request{Topic: "app", Users: []string{user}})
	if err != nil {
		h.t.Fatal(err)
	}
	return job
}

// taken carries an erasure out and expects that it takes so many rows.
func (h *waitingErasure) taken(e ledger.Erasure, rows uint64) {
	h.t.Helper()
	job, err := h.x.Run(h.t.Context(), "app", e.ID)
	if err != nil || job.State != ledger.Erased || job.Rows != rows {
		h.t.Fatalf("the erasure is %s and took %d rows, want %d (%v)", job.State, job.Rows, rows, err)
	}
}

// An erasure that was killed while it settled ends also where what tells how far it covers a shard left
// SHARDS meanwhile: it is noted before. Where it was not, another of the same ends it.
func TestWaitingErasureAfterItsFramesLeft(t *testing.T) {
	t.Parallel()
	t.Run("by the purge of another", func(t *testing.T) {
		t.Parallel()
		h := startWaiting(t)
		second := h.begin("u-7")
		h.taken(second, 7)
		if job, err := h.x.Purge(t.Context(), "app", second.ID); err != nil || job.Purged.Frames != 2 {
			t.Fatalf("%+v, %v", job.Purged, err)
		}
		h.taken(h.first, 15)
		h.log("u-2", 1)
		h.stored("app", 25-7-15+1, 30*time.Second)
		h.verify(26)
	})
	t.Run("by age", func(t *testing.T) {
		t.Parallel()
		h := startWaiting(t)
		nc := h.connect()
		j, err := retention.New(t.Context(), nc, retention.Config{Registry: h.registry(nc), DB: h.db, Now: func() time.Time { return time.Now().AddDate(0, 0, 8) }})
		if err != nil {
			t.Fatal(err)
		}
		shard := h.shards("app")[0].Ref().Subject()
		eventually(t, 10*time.Second, func() error {
			if err := j.Round(t.Context()); err != nil || len(h.messages(schemas.StreamShards, shard)) > 1 {
				return errors.Join(errors.New("frames are left"), err)
			}
			return nil
		})
		h.taken(h.first, 15)
		h.verify(25)
	})
	t.Run("unnoted", func(t *testing.T) {
		t.Parallel()
		h := startWaiting(t)
		shards, err := streams.Open(t.Context(), h.reg.JetStream(), schemas.StreamShards)
		if err != nil {
			t.Fatal(err)
		}
		at := h.messages(schemas.StreamShards, h.shards("app")[0].Ref().Subject())[2] // of u-7, at the fence
		if err := streams.Delete(t.Context(), h.js(), shards, at.Sequence, true, streams.Refuse); err != nil {
			t.Fatal(err)
		}
		if _, err := h.x.Run(t.Context(), "app", h.first.ID); !errors.Is(err, erasure.ErrLate) {
			t.Fatalf("it covers what is not known: %v", err)
		}
		again := h.begin("u-1")
		h.taken(again, 17)
		h.taken(h.first, 0)
		if err := h.x.Forget(t.Context(), "app", h.first.ID, true); err != nil {
			t.Error(err)
		}
		if n := h.found("app", "user_id = 'u-1'"); n != 0 {
			t.Errorf("%d events are left", n)
		}
	})
}

// A janitor that read an erasure before its fence was raised notes how far it covers a shard by the fence that counts.
func TestPinByARaisedFence(t *testing.T) {
	t.Parallel()
	h := startWaiting(t)
	stale, first := h.first, h.messages(schemas.StreamEvents, ">")[0]
	stale.Fence, stale.FenceTime = first.Sequence, first.Time.UnixNano()
	shard := h.shards("app")[0]
	if err := erasure.Pin(t.Context(), h.reg, shard.Ref(), ledger.Erasures{stale}); err != nil {
		t.Fatal(err)
	}
	if now, err := h.reg.Erasure(t.Context(), "app", h.first.ID); err != nil || now.Bounds[shard.ID] != 3 {
		t.Errorf("it is noted to cover %v (%v), want up to position 3", now.Bounds, err)
	}
	h.taken(h.first, 15)
	h.verify(25)
}
