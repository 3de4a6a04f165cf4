package doctor

import (
	"testing"

	"github.com/almanac-events/almanac/internal/access"
)

// An account has the work of its namesake, and one of another name that of the operator.
func TestWorkOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{access.UserSink: access.UserSink, access.UserReader: access.UserReader, "other": access.UserOperator} {
		if got := workOf(name).Name; got != want {
			t.Errorf("%s has the work of %s, want %s", name, got, want)
		}
	}
}
