package producer

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

func TestWindow(t *testing.T) {
	for name, c := range map[string]struct {
		limit, add int
		take       []uint64
		space      bool
		oldest     uint64
	}{
		"empty":                         {limit: 64, space: true, oldest: 1},
		"one below the limit":           {limit: 4, add: 3, space: true, oldest: 1},
		"at the limit":                  {limit: 4, add: 4, oldest: 1},
		"one answered":                  {limit: 4, add: 4, take: []uint64{2}, space: true, oldest: 1},
		"full":                          {limit: 64, add: 64, oldest: 1},
		"a stuck oldest holds the lane": {limit: 64, add: 64, take: []uint64{2, 3, 4, 64}, oldest: 1},
		"the oldest answered":           {limit: 64, add: 64, take: []uint64{2, 1}, space: true, oldest: 3},
		"all answered":                  {limit: 64, add: 3, take: []uint64{3, 1, 2}, space: true, oldest: 4},
		"answered twice":                {limit: 2, add: 2, take: []uint64{1, 1, 1}, space: true, oldest: 2},
		"never sent":                    {limit: 2, add: 2, take: []uint64{0, 3, 66}, oldest: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindow(c.limit)
			for range c.add {
				w.add(new(laneFrame))
			}
			for _, seq := range c.take {
				w.take(seq)
			}
			if w.space(math.MaxUint64) != c.space || w.oldest != c.oldest {
				t.Errorf("%s: room %v, oldest %d; want %v, %d", name, w.space(math.MaxUint64), w.oldest, c.space, c.oldest)
			}
		})
	}
}

func TestWindowSendsTheOldestDueAgain(t *testing.T) {
	w, now := newWindow(64), time.Unix(100, 0)
	for i := range 3 {
		f := &laneFrame{due: now.Add(time.Duration(1-i) * time.Second)}
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
			if w.space(math.MaxUint64) && rapid.Bool().Draw(rt, "send") {
				f := new(laneFrame)
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

// README, "order": of a producer and lane, a frame that is sent again may come after up to 63
// later ones and no more, and after none where one frame is in flight at a time. Frames and
// answers get lost in any way; what is stored is what a router takes.
func TestWindowBoundsHowLateAFrameComes(t *testing.T) {
	const most = 63
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.SampledFrom([]int{1, 2, 8, schemas.MaxInFlight}).Draw(rt, "limit")
		w := newWindow(limit)
		var stored []uint64
		var known checkpoint.Windows
		send := func(f *laneFrame) {
			if rapid.IntRange(0, 2).Draw(rt, "lost on the way") == 0 {
				return
			}
			head := schemas.Frame{Producer: "p", Seq: f.seq, Rows: 1}
			switch known.Check(head) {
			case checkpoint.Stale:
				rt.Fatalf("seq %d is too far behind %d", f.seq, known.Highest("p"))
			case checkpoint.Fresh:
				known = known.Take(head, f.seq)
				stored = append(stored, f.seq)
			}
			if rapid.IntRange(0, 4).Draw(rt, "answer lost") > 0 {
				w.take(f.seq)
			}
		}
		for range rapid.IntRange(1, 400).Draw(rt, "steps") {
			if w.space(math.MaxUint64) && rapid.IntRange(0, 3).Draw(rt, "new") > 0 {
				f := new(laneFrame)
				w.add(f)
				send(f)
				continue
			}
			if open := slices.Collect(w.all); len(open) > 0 {
				send(rapid.SampledFrom(open).Draw(rt, "again"))
			}
		}
		for i, seq := range stored {
			late := 0
			for _, before := range stored[:i] {
				if before > seq {
					late++
				}
			}
			if late > most || limit == 1 && late > 0 {
				rt.Fatalf("seq %d comes after %d later ones, %d in flight at most", seq, late, limit)
			}
		}
	})
	w := newWindow(schemas.MaxInFlight) // and so many there can be
	later := 0
	w.add(new(laneFrame))
	for ; later <= most && w.space(math.MaxUint64); later++ {
		f := new(laneFrame)
		w.add(f)
		w.take(f.seq)
	}
	if later != most {
		t.Errorf("%d frames go past one without an answer, the README says %d", later, most)
	}
}
