package api

import "testing"

// The first of several pages answers only who asked for pages: another would sum it for all.
func TestUnaskedPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit        int
		cursor, next string
		want         bool
	}{
		"all in one":          {0, "", "", false},
		"the first unasked":   {0, "", "more", true},
		"the first, asked":    {10, "", "more", false},
		"a later one":         {0, "from", "more", false},
		"the last of several": {10, "from", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := unasked(c.limit, c.cursor, c.next); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
