package repair

import (
	"slices"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

func TestYoungRecords(t *testing.T) {
	t.Parallel()
	const cut, later = 1_000, 2_000 // when the last message before the cut was stored, and one that was routed since
	first, since := schemas.Source{Seq: 100, Stored: cut}, schemas.Source{Seq: 130, Stored: later}
	for name, c := range map[string]struct {
		ends   routedEnds
		seq    uint64
		stored int64
		want   bool
	}{
		"from before the cut":                           {routedEnds{first}, 40, cut - 1, false},
		"the last before the cut":                       {routedEnds{first}, 100, cut, false},
		"written below after the cut":                   {routedEnds{first}, 41, cut + 1, true},
		"under the last sequence":                       {routedEnds{first}, 100, cut + 1, true},
		"above":                                         {routedEnds{first}, 101, cut + 1, false},
		"the routers went on, and no mark says it":      {routedEnds{since}, 41, cut + 1, false},
		"the routers went on, and the mark says it":     {routedEnds{first, since}, 41, cut + 1, true},
		"routed above meanwhile":                        {routedEnds{first, since}, 120, later - 1, false},
		"nothing was routed":                            {routedEnds{{}}, 1, cut, false},
		"a checkpoint that does not say when it stored": {routedEnds{{Seq: 100}}, 41, cut, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.ends.young(c.seq, c.stored); got != c.want {
				t.Errorf("%s: %t, expected %t", name, got, c.want)
			}
		})
	}
	if end := (routedEnds{first, since, {Seq: 7}}).max(); end != since {
		t.Errorf("the highest end is %+v, expected %+v", end, since)
	}
	if got := endsNamed(append(routedEnds{{}}, first, since, first).names()); !slices.Equal(got, routedEnds{first, since}) {
		t.Errorf("a mark says %+v", got)
	}
}
