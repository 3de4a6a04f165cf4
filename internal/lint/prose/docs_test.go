package main

import "testing"

func TestDocs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		src string
		bad bool
	}{
		"its name":                      {"// lane is one.\ntype lane struct{}", false},
		"a sentence":                    {"// What a lane is.\ntype lane struct{}", false},
		"none":                          {"type lane struct{}", false},
		"an earlier name of a type":     {"// row is one.\ntype lane struct{}", true},
		"an earlier name of a func":     {"// row is one.\nfunc lane() {}", true},
		"an earlier name of a method":   {"// row is one.\nfunc (t T) lane() {}", true},
		"an earlier name of a var":      {"// row is one.\nvar lane = 1", true},
		"another's, within a block":     {"const (\n\t// row is one.\n\tlane = 1\n)", true},
		"a block":                       {"// rows of all kinds.\nconst (\n\tlane = 1\n)", false},
		"a path":                        {"// docs/limits.md has it.\nvar lane = 1", false},
		"a directive":                   {"//go:noinline\nfunc lane() {}", false},
		"a name that begins as its own": {"// lanes are many.\ntype lane struct{}", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if bad := checkDocs("a.go", "package p\n\n"+c.src+"\n"); bad != c.bad {
				t.Errorf("refused: %v, expected %v", bad, c.bad)
			}
		})
	}
}
