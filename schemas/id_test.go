package schemas

import (
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Ids of a source rise in the order in which they were made, whatever its clock does.
func TestIDsOfASourceRise(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s IDSource
		now, last := int64(1_700_000_000_000_000_000), ID{}
		for range rapid.IntRange(2, 300).Draw(rt, "ids") {
			now += rapid.SampledFrom([]int64{0, 1, 400_000, 1e6, int64(time.Hour), -1, -1e6, -int64(time.Hour)}).Draw(rt, "step")
			if rapid.IntRange(0, 50).Draw(rt, "through") == 0 {
				s.last.Store(s.last.Load() | (1<<idCounterBits - 1)) // the counter's last value
			}
			id := s.Next(now)
			if id.Compare(last) <= 0 || id.String() <= last.String() {
				rt.Fatalf("%s follows %s", id, last)
			}
			if id.String()[14] != '7' || id[8]>>6 != 2 {
				rt.Fatalf("%s is not a UUID of version 7", id)
			}
			last = id
		}
	})
}

// Goroutines that share a source get no id twice.
func TestIDSourceIsShared(t *testing.T) {
	var s IDSource
	var wg sync.WaitGroup
	all := make([][]ID, 4)
	for i := range all {
		wg.Go(func() {
			for range 5_000 {
				all[i] = append(all[i], s.Next(5e18))
			}
		})
	}
	wg.Wait()
	ids := slices.Concat(all...)
	slices.SortFunc(ids, ID.Compare)
	if n := len(slices.Compact(ids)); n != 20_000 {
		t.Errorf("20000 ids, %d of them distinct", n)
	}
	if two := new(IDSource); two.Next(5e18) == new(IDSource).Next(5e18) {
		t.Error("two sources made the same id")
	}
}

// Ids of what a stream stored are in the order of arrival, and a re-run gives the same.
func TestSequenceIDs(t *testing.T) {
	const stored = 1_700_000_000_123_456_789
	for name, ids := range map[string][]ID{
		"lines, messages, times": {SequenceID(stored, 7, 0), SequenceID(stored, 7, 1), SequenceID(stored, 7, 1<<20-1), SequenceID(stored, 8, 1), SequenceID(stored+1, 7, 1), SequenceID(stored+1e6, 1, 1)},
		"a nanosecond":           {SequenceID(stored, 1<<33, 9), SequenceID(stored+1, 1, 1)},
		"a large sequence":       {SequenceID(stored, 1<<50+1, 1), SequenceID(stored, 1<<50+2, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.IsSortedFunc(ids, ID.Compare) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
				t.Errorf("%v do not rise", ids)
			}
		})
	}
	if id := SequenceID(stored, 7, 1); id.String() != "018bcfe5-687b-76f8-9540-000000700001" {
		t.Errorf("a re-run gives another id: %s", id)
	}
}

// A machine whose clock was never set makes ids of 1970, and ids of its time once the clock is set.
func TestIDsAfterAClockBefore1970(t *testing.T) {
	var s IDSource
	unset, set := s.Next(-1), s.Next(1_700_000_000_000_000_000)
	if want := "00000000-0000-7"; unset.String()[:len(want)] != want {
		t.Errorf("an id of before 1970 is %s", unset)
	}
	if want := "018bcfe5-6800-7"; set.String()[:len(want)] != want {
		t.Errorf("the clock was set, and the id is %s, expected %s…", set, want)
	}
}
