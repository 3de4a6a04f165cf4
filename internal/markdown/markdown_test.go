package markdown

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestPut(t *testing.T) {
	t.Parallel()
	const filled = "before\n<!-- a -->\n\n| x |\n\n<!-- /a -->\nafter\n"
	for name, c := range map[string]struct{ document, want string }{
		"empty":                    {"before\n<!-- a -->\n<!-- /a -->\nafter\n", filled},
		"filled":                   {"before\n<!-- a -->\nold\n<!-- /a -->\nafter\n", filled},
		"already so":               {filled, filled},
		"beside another":           {"<!-- b -->\nold\n<!-- /b -->\n<!-- a -->\n<!-- /a -->", "<!-- b -->\nold\n<!-- /b -->\n<!-- a -->\n\n| x |\n\n<!-- /a -->"},
		"no section":               {"before\n", ""},
		"no end":                   {"<!-- a -->\n", ""},
		"the end before its begin": {"<!-- /a -->\n<!-- a -->\n", ""},
		"two":                      {"<!-- a -->\n<!-- /a -->\n<!-- a -->\n<!-- /a -->\n", ""},
		"an end too many":          {"<!-- /a -->\n<!-- a -->\n<!-- /a -->\n", ""},
		"nothing":                  {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Put([]byte(c.document), "a", "| x |\n")
			if string(got) != c.want || errors.Is(err, ErrNoSection) != (c.want == "") {
				t.Errorf("%q, %v; expected %q", got, err, c.want)
			}
		})
	}
}

// A file is written only where that is asked for, and only if there is a place.
func TestSectionAndFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "README.md")
	has := func(want string) {
		t.Helper()
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Fatalf("the file has %q, expected %q", got, want)
		}
	}
	if err := File(path, "x", false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("comparing a file that is not there: %v", err)
	}
	const empty = "<!-- a -->\n<!-- /a -->\n"
	if err := File(path, empty, true); err != nil {
		t.Fatal(err)
	}
	if err := Section(path, "a", "x", false); !errors.Is(err, ErrOther) {
		t.Errorf("comparing: %v", err)
	}
	if err := Section(path, "b", "x", true); !errors.Is(err, ErrNoSection) {
		t.Errorf("a section that is not there: %v", err)
	}
	has(empty)
	if err := Section(path, "a", "x", true); err != nil {
		t.Fatal(err)
	}
	has("<!-- a -->\n\nx\n\n<!-- /a -->\n")
	if err := errors.Join(Section(path, "a", "x", false), File(path, "<!-- a -->\n\nx\n\n<!-- /a -->\n", false)); err != nil {
		t.Errorf("comparing what is so: %v", err)
	}
}
