package main

import (
	"slices"
	"testing"
)

// A document that names a path of this tree which is gone is found; words with a slash are no paths.
func TestMissingPaths(t *testing.T) {
	tree := map[string]bool{"schemas": true, "schemas/sql/columns.sql": true, "docs/limits.md": true}
	text := "`schemas/sql/columns.sql`, `schemas/testdata`, `text/plain`, [limits](limits.md#rows), [gone](gone.md), [far](https://example.com/x)"
	got := missing("docs/page.md", text, func(path string) bool { return tree[path] })
	if want := []string{"schemas/testdata", "gone.md"}; !slices.Equal(got, want) {
		t.Fatalf("missing: %q, want %q", got, want)
	}
}
