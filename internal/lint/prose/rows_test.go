package main

import (
	"slices"
	"testing"
)

// A table that has two rows of one thing is found; two tables may each have one, and a first cell may be empty.
func TestTwice(t *testing.T) {
	text := "| limit | value |\n|---|---|\n| a | 1 |\n| b | 2 |\n|  | 3 |\n|  | 4 |\n| a | 5 |\n\n| limit | value |\n|---|---|\n| b | 6 |\n"
	if got, want := twice(text), []string{"a"}; !slices.Equal(got, want) {
		t.Fatalf("twice: %q, want %q", got, want)
	}
}
