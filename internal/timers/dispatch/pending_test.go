package dispatch

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// TestPending prints what pending timers cost NATS and a dispatcher together, and how long the wheel takes to
// load; a timer that is due is called meanwhile: ALMANAC_TIMERS_PENDING=500000, in as many slots as ALMANAC_TIMERS_SLOTS.
func TestPending(t *testing.T) {
	t.Parallel()
	n := sized("ALMANAC_TIMERS_PENDING", 3000)
	e := newEnv(t)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, began := heap(), time.Now()
	e.create(timers.Draft{ID: "due", Due: time.Now()})
	e.fill(n)
	t.Logf("%d created, %.0f/s", n, float64(n)/time.Since(began).Seconds())
	began = time.Now()
	d, _, _ := e.dispatcher(nil)
	e.until("the due one is called", func() bool { return e.called() == 1 })
	called, waiting := time.Since(began), d.Stats().Waiting
	e.until("the wheel is loaded", func() bool { return d.Stats().Waiting == n })
	loaded := time.Since(began)
	t.Logf("loaded in %s; the due one was called after %s, when %d waited; %d bytes each in NATS and dispatcher", loaded, called, waiting, (int64(heap())-int64(before))/int64(n))
	if e.called() != 1 {
		t.Errorf("%d timers were called, expected one", e.called())
	}
}

// fill writes pending timers due in a year, 500 at a time.
func (e *env) fill(n int) {
	e.t.Helper()
	js, err := jetstream.New(e.srv.NC())
	if err != nil {
		e.t.Fatal(err)
	}
	w, err := fronts.Open(e.ctx, js, schemas.StreamTimers, fronts.Config{})
	if err != nil {
		e.t.Fatal(err)
	}
	now := time.Now()
	due := now.Add(365 * 24 * time.Hour).UnixNano()
	var wg sync.WaitGroup
	const writers = 4
	for k := range writers {
		wg.Go(func() {
			var rs []fronts.Record
			for i := k; i < n; i += writers {
				key := schemas.NewTimerKey(schemas.DefaultTimerTopic, "g", "p"+strconv.Itoa(i), slots(), kinds.FrontLanes)
				r, _, err := timer.Create(key, nil, timer.Draft{Spec: timer.Spec{URL: e.url}, Due: due, Life: schemas.NewID(now.UnixNano())}, now.UnixNano())
				if err != nil {
					e.t.Error(err)
					return
				}
				h, data, err := r.Message()
				if err != nil {
					e.t.Error(err)
					return
				}
				rs = append(rs, fronts.Record{Subject: key.Subject(), Header: h, Data: data})
				if len(rs) == fronts.MaxBatch || i+writers >= n {
					if _, err := w.PutAll(e.ctx, rs); err != nil {
						e.t.Error(err)
						return
					}
					rs = nil
				}
			}
		})
	}
	wg.Wait()
}
