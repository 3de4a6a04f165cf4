package main

import (
	"strings"
	"testing"
)

func TestStatements(t *testing.T) {
	long := "SELECT " + strings.Repeat("a, ", 120) + "b FROM t"
	for _, c := range []struct {
		name, source string
		path         string
		want         string // of what is refused; "" nothing is
	}{
		{"a short one in a room", "const q = `SELECT 1 FROM t`", "internal/tables/a.go", ""},
		{"a short one elsewhere", "const q = `SELECT 1 FROM t`", "sinks/a.go", "a.go:2: a statement outside"},
		{"a subquery elsewhere", "const q = ` AND id IN (SELECT id FROM t)`", "sinks/a.go", "a.go:2: a statement outside"},
		{"four lines in a room", "const q = `SELECT 1\n FROM t\n WHERE 1\n ORDER BY 1`", "query/a.go", "a.go:2: a statement of 4 lines"},
		{"one line that is as long as four", "const q = `" + long + "`", "query/a.go", "a.go:2: a statement of 4 lines"},
		{"a sum of texts that is", "var x string\nvar q = `" + long[:200] + "` + x +\n\"" + long[200:] + "\"", "query/a.go", "a.go:3: a statement of 4 lines"},
		{"a format", "var q = fmt.Sprintf(\"INSERT INTO %s \" + \"VALUES\", t)", "sinks/a.go", "a.go:2: a statement outside"},
		{"a side of a comparison", "var q = x == `SELECT 1`", "sinks/a.go", "a.go:2: a statement outside"},
		{"prose", "const q = `to SELECT rows is to read them`", "sinks/a.go", ""},
		{"a tag and an import", "type q struct { a int `SELECT 1` }", "sinks/a.go", ""},
		{"an exception", "const q = `SELECT 1 FROM t`", "bench/a.go", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := statements(c.path, "package p\n"+c.source)
			if err != nil {
				t.Fatal(err)
			}
			except := map[string]string{}
			if strings.HasPrefix(c.path, "bench/") {
				except["bench/"] = "it measures"
			}
			got := strings.Join(refused(map[string][]found{c.path: all}, except), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("refused %q, want %q", got, c.want)
			}
		})
	}
}

// An exception that nothing needs is refused.
func TestExceptionsAreNeeded(t *testing.T) {
	got := refused(map[string][]found{"query/a.go": {{line: 1, lines: 1, text: "SELECT 1"}}}, map[string]string{"query/": "it was long"})
	if len(got) != 1 || !strings.HasPrefix(got[0], "query/: ") {
		t.Errorf("refused %q", got)
	}
}
