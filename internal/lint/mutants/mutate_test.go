package main

import (
	"slices"
	"testing"
)

func TestMutants(t *testing.T) {
	t.Parallel()
	const src = `package p

const one = 1 + 1

func f(a, b int) (s string) {
	for a < b {
		if a == 0 {
			continue
		}
		g(a)
		b = 2
		s = "x" + s
	}
	return s
}
`
	all, err := mutants(src)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		if m.apply(src) == src {
			t.Errorf("line %d: %s changes nothing", m.Line, m.What)
		}
		got = append(got, m.What)
	}
	want := []string{
		"< becomes <=", "the condition is negated", "== becomes !=", "continue is gone",
		"the call is gone: g(a)", "the assignment is gone: b = 2", `the assignment is gone: s = "x" + s`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}
