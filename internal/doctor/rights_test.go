package doctor

import (
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
)

// One right is taken away at a time: that one is named, and no other.
func TestMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	for _, u := range access.ClickHouseUsers() {
		rights := workOf(u.Name).Rights("almanac")
		if len(rights) == 0 {
			t.Errorf("%s has %v", u.Name, rights)
		}
		for _, gone := range rights {
			got, err := lacking(rights, func(r access.TableGrant) (bool, error) { return r != gone, nil })
			if want := []string{gone.Rights + " ON " + gone.On}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%s without %v lacks %v, %v", u.Name, gone, got, err)
			}
		}
	}
	if got := workOf("other").Name; got != access.UserOperator {
		t.Errorf("an account of another name has the work of %s", got)
	}
}
