package cleaner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    keyState
		cold bool
		want act
		upTo uint64
	}{
		"cold":                                   {s: keyState{seen: []uint64{5}, stored: true, last: 5}, cold: true, want: stub},
		"cold, with older versions":              {s: keyState{seen: []uint64{3, 5}, stored: true, last: 5}, cold: true, want: stub},
		"cold, but not stored":                   {s: keyState{seen: []uint64{3, 5}, last: 5}, cold: true, want: hold},
		"a newer version that is hot":            {s: keyState{seen: []uint64{3, 5}, stored: true, last: 9}, cold: true, want: purge, upTo: 5},
		"a newer one, and older not stored":      {s: keyState{seen: []uint64{3, 5}, last: 9}, cold: true, want: hold},
		"removed":                                {s: keyState{seen: []uint64{5}, stored: true, last: 5, over: true}, cold: true, want: purge, upTo: 5},
		"removed, but still hot":                 {s: keyState{seen: []uint64{5}, stored: true, last: 5, over: true}, want: leave},
		"removed, still hot, older versions":     {s: keyState{seen: []uint64{3, 5}, stored: true, last: 5, over: true}, want: purge, upTo: 3},
		"settled, and hot":                       {s: keyState{seen: []uint64{5}, stored: true, last: 5}, want: leave},
		"settled, hot, older versions":           {s: keyState{seen: []uint64{3, 5}, stored: true, last: 5}, want: refresh},
		"settled, and a newer one":               {s: keyState{seen: []uint64{3, 5}, stored: true, last: 9}, want: purge, upTo: 5},
		"covered by a stray":                     {s: keyState{seen: []uint64{5}, stored: true, last: 9, misplaced: true}, cold: true, want: hold},
		"gone meanwhile":                         {s: keyState{seen: []uint64{5}, stored: true}, cold: true, want: leave},
		"leaves whole, not over":                 {s: keyState{seen: []uint64{3, 5}, stored: true, last: 5, whole: true}, cold: true, want: leave},
		"leaves whole, not over, a newer one":    {s: keyState{seen: []uint64{3, 5}, stored: true, last: 9, whole: true}, cold: true, want: leave},
		"leaves whole, a newer one that is over": {s: keyState{seen: []uint64{3}, stored: true, last: 9, whole: true, over: true}, cold: true, want: leave},
		"leaves whole, over":                     {s: keyState{seen: []uint64{5}, stored: true, last: 5, whole: true, over: true}, cold: true, want: purge, upTo: 5},
		"leaves whole, over, still hot":          {s: keyState{seen: []uint64{3, 5}, stored: true, last: 5, whole: true, over: true}, want: leave},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, upTo := decide(&c.s, c.cold); got != c.want || upTo != c.upTo {
				t.Errorf("it is %d up to %d, expected %d up to %d", got, upTo, c.want, c.upTo)
			}
		})
	}
}

// Whatever a walk saw: nothing leaves of a key of which something is not stored, a purge
// never reaches the last message of a key that is not over, and a key that leaves whole
// loses nothing before it is over.
func TestDecideKeeps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := keyState{
			seen:   rapid.SliceOfNDistinct(rapid.Uint64Range(1, 20), 1, 5, rapid.ID[uint64]).Draw(t, "seen"),
			stored: rapid.Bool().Draw(t, "stored"), misplaced: rapid.Bool().Draw(t, "stray"), over: rapid.Bool().Draw(t, "over"), whole: rapid.Bool().Draw(t, "whole"),
			last: rapid.Uint64Range(0, 20).Draw(t, "last"),
		}
		slices.Sort(s.seen)
		what, upTo := decide(&s, rapid.Bool().Draw(t, "cold"))
		newest := s.seen[len(s.seen)-1]
		switch {
		case what > hold && (!s.stored || s.misplaced):
			t.Fatalf("%d although it is not stored", what)
		case what == purge && (upTo > newest || upTo >= s.last && !s.over):
			t.Fatalf("purged up to %d of %d", upTo, s.last)
		case (what == stub || what == refresh) && s.last != newest:
			t.Fatalf("%d of a record that is not the last", what)
		case s.whole && what > hold && (!s.over || what != purge || upTo != s.last):
			t.Fatalf("%d up to %d of a key that leaves whole", what, upTo)
		}
	})
}
