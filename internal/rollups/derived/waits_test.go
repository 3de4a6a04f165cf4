package derived

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// The rows of a shard may go only when its sums stand for all of them.
func TestDerivedWaits(t *testing.T) {
	t.Parallel()
	full := Progress{Stored: schemas.Stored{Rows: 10, Head: 5}, Examined: 5, Repeats: 2, Sums: Sums{Pos: 5, N: 8, Repeats: 2, rows: 10, repeats: 2}}
	for name, c := range map[string]struct {
		change func(*Progress)
		says   string
	}{
		"all summed":            {func(*Progress) {}, ""},
		"no rows":               {func(s *Progress) { *s = Progress{} }, ""},
		"not examined":          {func(s *Progress) { s.Examined = 3 }, "up to position 3 of 5"},
		"other rows":            {func(s *Progress) { s.Examined, s.Doubted = 0, true }, "other rows"},
		"not summed":            {func(s *Progress) { s.Sums = Sums{} }, "not summed"},
		"sums behind":           {func(s *Progress) { s.Sums = Sums{Pos: 4, N: 8, rows: 8} }, "reach position 4 of 5"},
		"a repeat found since":  {func(s *Progress) { s.Sums.repeats = 3 }, "filled again"},
		"a row lost from sums":  {func(s *Progress) { s.Sums.N = 7 }, "filled again"},
		"a row lost from table": {func(s *Progress) { s.Sums.rows = 9 }, "filled again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := full
			c.change(&s)
			if got := s.Waits(); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
				t.Errorf("%q, want %q", got, c.says)
			}
		})
	}
}
