package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// A flag that names a version or a lock takes no 0 and nothing empty: it would name none, and
// the write would go on without its guard.
func TestOrdinal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"": 0, "0": 0, "-1": 0, "x": 0, "1": 1, "18446744073709551615": 1<<64 - 1} {
		cmd := &cobra.Command{}
		addFlags(cmd, tokenFlag("lock", "`TOKEN`"))
		if err := cmd.Flags().Set("lock", text); (err == nil) != (want > 0) {
			t.Errorf("%q: %v", text, err)
		}
		if got, err := cmd.Flags().GetUint64("lock"); err != nil || got != want {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}
