package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

func TestSearchesThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    Search
		want string
	}{
		"without a name":         {Search{Topics: []string{"app"}}, "name is empty"},
		"spaces at an end":       {Search{Name: "a ", Topics: []string{"app"}}, "spaces at its ends"},
		"dots alone":             {Search{Name: "..", Topics: []string{"app"}}, "dots alone"},
		"a long name":            {Search{Name: strings.Repeat("n", MaxSearchNameBytes+1), Topics: []string{"app"}}, "121 bytes; the limit is 120"},
		"a name that turns text": {Search{Name: "a\u202eb", Topics: []string{"app"}}, "cannot be seen"},
		"a name in no encoding":  {Search{Name: "a\xff", Topics: []string{"app"}}, "cannot be seen"},
		"no topic":               {Search{Name: "a"}, "names no topic"},
		"a large one":            {Search{Name: "a", Topics: []string{"app"}, Where: strings.Repeat("x", MaxSearchBytes)}, "the limit is 8192"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.s.Validate(); !errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	ok := Search{Name: "errors / \u00e4 of today", Topics: []string{"app"}, Where: "level = 'error'"}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
}

func TestSearchesAreKept(t *testing.T) {
	t.Parallel()
	r := open(t)
	for i := range 3 {
		s := Search{Name: fmt.Sprintf("s. >*%d", i), Topics: []string{"app"}, Shown: map[string]string{"by": "level"}}
		if err := r.SaveSearch(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
	}
	changed := Search{Name: "s. >*1", Topics: []string{"other"}}
	if err := errors.Join(r.SaveSearch(t.Context(), &changed), r.ForgetSearch(t.Context(), "s. >*2")); err != nil {
		t.Fatal(err)
	}
	all, err := r.Searches(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if got, err := r.Search(t.Context(), "s. >*1"); err != nil || got.Topics[0] != "other" || got.Shown != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := r.ForgetSearch(t.Context(), "s. >*2"); !errors.Is(err, ErrNotFound) {
		t.Errorf("one that is gone: %v", err)
	}
}
