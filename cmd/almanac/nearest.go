package main

import "github.com/almanac-events/almanac/schemas"

// suggestion is ", did you mean …?" with the known name nearest to s, or
// nothing when none is near.
func suggestion(s string, known []string, prefix string) string {
	best := schemas.Nearest(s, known)
	if best == "" {
		return ""
	}
	return ", did you mean " + prefix + best + "?"
}
