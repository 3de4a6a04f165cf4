package producer

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

func TestWindow(t *testing.T) {
	for name, c := range map[string]struct {
		limit, add int
		take       []uint64
		room       bool
		oldest     uint64
	}{
		"empty":                         {limit: 64, room: true, oldest: 1},
		"one below the limit":           {limit: 4, add: 3, room: true, oldest: 1},
		"at the limit":                  {limit: 4, add: 4, oldest: 1},
		"one answered":                  {limit: 4, add: 4, take: []uint64{2}, room: true, oldest: 1},
		"full":                          {limit: 64, add: 64, oldest: 1},
		"a stuck oldest holds the lane": {limit: 64, add: 64, take: []uint64{2, 3, 4, 64}, oldest: 1},
		"the oldest answered":           {limit: 64, add: 64, take: []uint64{2, 1}, room: true, oldest: 3},
		"all answered":                  {limit: 64, add: 3, take: []uint64{3, 1, 2}, room: true, oldest: 4},
		"answered twice":                {limit: 2, add: 2, take: []uint64{1, 1, 1}, room: true, oldest: 2},
		"never sent":                    {limit: 2, add: 2, take: []uint64{0, 3, 66}, oldest: 1},
	} {
		w := newWindow(c.limit)
		for range c.add {
			w.add(new(frame))
		}
		for _, seq := range c.take {
			w.take(seq)
		}
		if w.room(math.MaxUint64) != c.room || w.oldest != c.oldest {
			t.Errorf("%s: room %v, oldest %d; want %v, %d", name, w.room(math.MaxUint64), w.oldest, c.room, c.oldest)
		}
	}
}

func TestWindowSendsTheOldestDueAgain(t *testing.T) {
	w, now := newWindow(64), time.Unix(100, 0)
	for i := range 3 {
		f := &frame{due: now.Add(time.Duration(1-i) * time.Second)}
		w.add(f) // due in 1 s, now, 1 s ago
	}
	if f := w.due(now); f == nil || f.seq != 2 {
		t.Errorf("%+v is due, want seq 2", f)
	}
	if f := w.due(now.Add(-2 * time.Second)); f != nil {
		t.Errorf("seq %d is due too early", f.seq)
	}
	if w.held() {
		t.Error("held, though no frame was refused")
	}
	w.slots[3].refused = true
	if !w.held() {
		t.Error("not held, though a frame was refused")
	}
}

// Whatever is answered in whatever order, a seq is given once, in order, and
// never further than MaxInFlight from the oldest that is unanswered.
func TestWindowNeverOutrunsTheRouter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, schemas.MaxInFlight).Draw(rt, "limit")
		w := newWindow(limit)
		open, last := map[uint64]bool{}, uint64(0)
		for range rapid.IntRange(1, 500).Draw(rt, "steps") {
			if w.room(math.MaxUint64) && rapid.Bool().Draw(rt, "send") {
				f := new(frame)
				w.add(f)
				if f.seq != last+1 {
					rt.Fatalf("seq %d after %d", f.seq, last)
				}
				last = f.seq
				open[f.seq] = true
			} else if last > 0 {
				seq := uint64(rapid.Int64Range(max(1, int64(last)-70), int64(last)).Draw(rt, "answered"))
				if f := w.take(seq); (f != nil) != open[seq] {
					rt.Fatalf("take(%d) = %v, outstanding: %v", seq, f, open[seq])
				}
				delete(open, seq)
			}
			if len(open) > limit || w.count != len(open) {
				rt.Fatalf("%d in flight, counted %d, the limit is %d", len(open), w.count, limit)
			}
			for seq := range open {
				if last-seq >= schemas.MaxInFlight {
					rt.Fatalf("seq %d is unanswered and %d was sent", seq, last)
				}
			}
		}
	})
}
