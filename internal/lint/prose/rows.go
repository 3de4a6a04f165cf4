package main

import (
	"fmt"
	"strings"
)

// twice returns the first cells that a table of a document has more than once: two rows of one thing, of which one is older.
func twice(text string) (cells []string) {
	var seen map[string]bool
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			seen = nil
			continue
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		cell, _, _ := strings.Cut(line[1:], "|")
		cell = strings.TrimSpace(cell)
		if cell != "" && seen[cell] {
			cells = append(cells, cell)
		}
		seen[cell] = true
	}
	return cells
}

// checkRows reports whether docs/limits.md says a limit twice.
func checkRows() (bad bool) {
	const path = "docs/limits.md"
	for _, cell := range twice(whole(path)) {
		fmt.Printf("%s: %q has two rows in one table: fold them\n", path, cell)
		bad = true
	}
	return bad
}
