package kinds

import (
	"slices"
	"testing"
)

// Columns that find equal events begin the table's order, so that ClickHouse skips by them, end with the time, by which parts
// are skipped, and are the same in equal events.
func TestFoundBy(t *testing.T) {
	t.Parallel()
	found := 0
	for _, s := range Specs() {
		if len(s.FoundBy) == 0 {
			continue
		}
		found++
		if n := len(s.FoundBy); n > len(s.Sort) || !slices.Equal(s.FoundBy, s.Sort[:n]) || s.FoundBy[n-1] != ColTs {
			t.Errorf("kind %s is found by %q, its table is in the order of %q", s.Kind, s.FoundBy, s.Sort)
		}
		for _, column := range s.FoundBy {
			if column != ColSeries && !slices.Contains(s.Once, column) { // series is a hash of columns of Once
				t.Errorf("kind %s is found by %q, in which equal events may differ", s.Kind, column)
			}
		}
		for _, column := range SeriesOf {
			if slices.Contains(s.FoundBy, ColSeries) && !slices.Contains(s.Once, column) {
				t.Errorf("kind %s is found by the hash of %q, in which equal events may differ", s.Kind, column)
			}
		}
	}
	if found == 0 {
		t.Error("no kind is found by its order")
	}
}
