package embedded

import (
	"slices"
	"testing"
)

// The engine's allocator is told to ask for huge pages, unless the environment says
// something of its own.
func TestEngineEnv(t *testing.T) {
	ours := []string{"PATH=/bin", "MALLOC_CONFIG=x"}
	if got, want := engineEnv(ours), append(slices.Clone(ours), childEnv+"=1", "MALLOC_CONF=thp:always"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	theirs := []string{"MALLOC_CONF=dirty_decay_ms:0"}
	if got, want := engineEnv(theirs), append(slices.Clone(theirs), childEnv+"=1"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
