package request

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// A holder may have three times what it leaves, and others find room in what is left.
func TestShares(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slots int
		want  []int // what one holder after the other gets that takes all it may
	}{
		"reads":         {86, []int{64, 16, 4, 1, 1}},
		"statements":    {22, []int{16, 4, 1, 1}},
		"queries":       {11, []int{8, 2, 1}},
		"expressions":   {4, []int{3, 1}},
		"of two cores":  {2, []int{1, 1}},
		"one":           {1, []int{1, 0}},
		"none":          {0, []int{0}},
		"many":          {342, []int{256, 64, 16, 4, 1, 1, 0}},
		"a round eight": {8, []int{6, 1, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sharesOf(c.slots)
			for i, want := range c.want {
				got, holder := 0, fmt.Sprint(i)
				for s.take(holder, 1) {
					got++
				}
				if got != want {
					t.Errorf("holder %d got %d, want %d", i, got, want)
				}
			}
		})
	}
	for each := 1; each <= 300; each++ { // one alone has what is named, and no more
		s := sharesOf(WithOthers(each))
		for range each {
			if !s.take("one", 1) {
				t.Fatalf("one client alone gets less than %d", each)
			}
		}
		if s.take("one", 1) {
			t.Fatalf("one client alone gets more than %d", each)
		}
	}
}

// Whatever holders take and give back: never more than there are; one that holds no slot gets one while any is free; and while one alone
// floods, another that holds no slot finds room.
func TestSharesHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := sharesOf(rapid.IntRange(2, 40).Draw(t, "slots"))
		held := map[string]int{}
		names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				who, free := names.Draw(t, "who"), s.slots-s.taken
				n := rapid.IntRange(1, 5).Draw(t, "n")
				took := s.take(who, n)
				if free > 0 && held[who] == 0 && n == 1 && !took {
					t.Fatalf("%s holds no slot, and gets none of %d", who, free)
				}
				if took {
					held[who] += n
				}
			},
			"give back": func(t *rapid.T) {
				if who := names.Draw(t, "who"); held[who] > 0 {
					n := rapid.IntRange(1, held[who]).Draw(t, "n")
					s.giveBack(who, n)
					held[who] -= n
				}
			},
			"flood": func(t *rapid.T) {
				who, alone := names.Draw(t, "who"), true
				for other, n := range held {
					alone = alone && (n == 0 || other == who)
				}
				for n := s.slots; n > 0; n-- { // as much at once as it gets
					for s.take(who, n) {
						held[who] += n
					}
				}
				if !alone {
					return
				}
				if !s.take("another", 1) {
					t.Fatalf("%s has %d of %d, and another gets none", who, held[who], s.slots)
				}
				s.giveBack("another", 1)
			},
			"": func(t *rapid.T) {
				all := 0
				for who, n := range held {
					if all += n; s.by[who] != n {
						t.Fatalf("%s has %d, counted are %d", who, n, s.by[who])
					}
				}
				if all != s.taken || s.taken > s.slots {
					t.Fatalf("%d of %d are taken, counted are %d", all, s.slots, s.taken)
				}
				if all == 0 && len(s.by) > 0 {
					t.Fatal("who holds no slot is remembered")
				}
			},
		})
	})
}
