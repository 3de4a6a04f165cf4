package tables

import "testing"

func TestDecideEngine(t *testing.T) {
	t.Parallel()
	const a, b = "00000000000000aa", "00000000000000bb"
	empty, of := Look{}, func(rows uint64, ids ...string) Look { return Look{IDs: ids, Rows: rows} }
	for name, c := range map[string]struct {
		kept string
		seen []Look
		do   step
		id   string
	}{
		"the right one":                        {a, []Look{of(5, a), of(5, a)}, useIt, a},
		"the right one, which has two":         {b, []Look{of(5, a, b), of(5, a, b)}, useIt, b},
		"a new cluster":                        {"", []Look{empty, empty}, nameIt, ""},
		"a new cluster, named":                 {"", []Look{of(0, a), of(0, a)}, takeIt, a},
		"a lost registry":                      {"", []Look{of(9, a), of(9, a)}, takeIt, a},
		"two new servers, one named":           {"", []Look{of(0, a), empty}, refuseIt, ""},
		"two servers of which one is right":    {a, []Look{of(5, a), empty, of(5, a)}, refuseIt, ""},
		"the right one last":                   {a, []Look{empty, empty, of(5, a)}, refuseIt, ""},
		"two others":                           {a, []Look{of(0, b), empty}, refuseIt, ""},
		"an empty one":                         {a, []Look{empty, empty}, nameIt, ""},
		"an empty one, named":                  {a, []Look{of(0, b), of(0, b)}, adoptIt, b},
		"another with rows":                    {a, []Look{of(7, b), of(7, b)}, otherRows, ""},
		"another with rows and no identity":    {a, []Look{of(7), of(7)}, otherRows, ""},
		"rows without identity, lost registry": {"", []Look{of(7), of(7)}, nameIt, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if do, id := decide(c.kept, c.seen); do != c.do || id != c.id {
				t.Errorf("decide: %d %q, want %d %q", do, id, c.do, c.id)
			}
		})
	}
}

// A server that another process names meanwhile is not two.
func TestBeingNamed(t *testing.T) {
	t.Parallel()
	const a, b = "00000000000000aa", "00000000000000bb"
	empty, of := Look{}, func(ids ...string) Look { return Look{IDs: ids} }
	for name, c := range map[string]struct {
		kept string
		seen []Look
		want bool
	}{
		"named between two looks":        {"", []Look{empty, of(a), of(a)}, true},
		"in place of a lost one":         {b, []Look{empty, of(a)}, true},
		"by two processes":               {"", []Look{empty, of(a), of(a, b)}, true},
		"two servers with names":         {"", []Look{of(a), of(b), empty}, false},
		"the right one, and one without": {a, []Look{of(a), empty}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := beingNamed(c.kept, c.seen); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
