package main

import (
	"slices"
	"testing"
)

// A comment that names what was renamed is found, and a file that is gone too; words of one case are prose.
func TestStaleComments(t *testing.T) {
	got := stale(map[string]string{
		"a/keep.go": "package a\n\n// keepTime is how long Config.settleTime was (keep.go, purge.go).\nconst keepTime = 5 // of MurmurHash3's lookUps\n\nfunc lookUp() {}\n",
	})
	slices.Sort(got)
	if want := []string{"a/keep.go:3: purge.go", "a/keep.go:3: settleTime"}; !slices.Equal(got, want) {
		t.Fatalf("stale: %q, want %q", got, want)
	}
}
