package schemas_test

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// What covers and meets means is counted out: over all subjects of up to three tokens, each a, b or c.
func TestFiltersAreComparedAsTheyMatch(t *testing.T) {
	t.Parallel()
	tokens := func(of []string, tail bool) (all []string) {
		for _, x := range of {
			all = append(all, x)
			for _, y := range of {
				all = append(all, x+"."+y)
				for _, z := range of {
					all = append(all, x+"."+y+"."+z)
				}
			}
		}
		if tail {
			for _, f := range append([]string{""}, all...) {
				if strings.Count(f, ".") < 2 {
					all = append(all, strings.TrimPrefix(f+".>", "."))
				}
			}
		}
		return all
	}
	subjects, filters := tokens([]string{"a", "b", "c", "d"}, false), tokens([]string{"a", "b", "*"}, true)
	for _, f := range filters {
		for _, g := range filters {
			covers, meet := true, false
			for _, s := range subjects {
				in := schemas.MatchesSubject(g, s)
				covers = covers && (!in || schemas.MatchesSubject(f, s))
				meet = meet || in && schemas.MatchesSubject(f, s)
			}
			// Longer subjects are matched by > alone, which three tokens tell from three.
			if strings.HasSuffix(g, ">") && !strings.HasSuffix(f, ">") {
				covers = false
			}
			if got := schemas.CoversSubjects(f, g); got != covers {
				t.Errorf("%s covers %s: %t, want %t", f, g, got, covers)
			}
			if got := schemas.SubjectsMeet(f, g); got != meet {
				t.Errorf("%s meets %s: %t, want %t", f, g, got, meet)
			}
		}
	}
}
