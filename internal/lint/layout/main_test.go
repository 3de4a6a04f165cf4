package main

import (
	"slices"
	"strings"
	"testing"
)

const listed = "m\tm\tPackage m opens.\tm/query fmt\n" +
	"m\tm/query\tPackage query reads | pages.\tm/internal/tables m/schemas\n" +
	"m\tm/query/filter\tPackage filter.\tm/schemas m/query/filter/x\n" +
	"m\tm/internal/query/recent\tPackage recent.\tm/query/filter\n" +
	"m\tm/internal/tables\tPackage tables asks.\tm/schemas/sql\n" +
	"m\tm/schemas\tPackage schemas names.\tfmt mm/other\n"

func TestFolders(t *testing.T) {
	t.Parallel()
	all := folders(listed)
	var got []string
	for _, r := range all {
		got = append(got, r.name+"("+strings.Join(r.parts, ",")+"):"+strings.Join(reduced(all, r), ","))
	}
	want := []string{"almanac():query", "query(filter,recent):tables", "schemas():", "tables():schemas"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	text := draw(folders(listed))
	for _, want := range []string{"  query[query] --> tables(tables)\n", "| query | reads \\| pages | filter, recent |\n", "| almanac | opens |  |\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestCircle(t *testing.T) {
	t.Parallel()
	if got := circle(folders(listed)); got != "" {
		t.Errorf("%s where there is no circle", got)
	}
	if got := circle(folders(listed + "m\tm/schemas/sql\tPackage sql.\tm/query\n")); got != "query → schemas → query" {
		t.Errorf("the circle is %q", got)
	}
}
