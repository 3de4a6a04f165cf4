package main

import (
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
)

// What others wrote moves nothing where a table ends up, in a pipe too.
func TestCellsArePrintable(t *testing.T) {
	t.Parallel()
	w := newTable("id", "body")
	w.AppendRow(table.Row{"a\x1b[31mred\u202e", "one\ntwo\tthree"})
	w.AppendRow(table.Row{asIs("\x1b[32mok\x1b[0m"), 3})
	want := "ID          BODY\na·[31mred·  one⏎two three\n\x1b[32mok\x1b[0m          3"
	if got := w.Render(); got != want {
		t.Errorf("the table is\n%q, want\n%q", got, want)
	}
}
