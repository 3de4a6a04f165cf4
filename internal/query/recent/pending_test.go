package recent

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// A message of EVENTS is left out where SHARDS has it, and not where SHARDS has
// another one whose sequence was given again.
func TestUnrepeated(t *testing.T) {
	t.Parallel()
	at := func(seq uint64, stored int64) Meta {
		return Meta{frameMeta: frameMeta{source: schemas.Source{Seq: seq, Stored: stored}}}
	}
	events := []Meta{at(7, 70), at(8, 80), at(9, 90)}
	for _, c := range []struct {
		name   string
		shards []Meta
		want   int
	}{
		{"none is routed", nil, 3},
		{"one is routed", []Meta{at(8, 80)}, 2},
		{"its sequence was another's", []Meta{at(8, 20)}, 3},
		{"both were routed", []Meta{at(8, 20), at(8, 80)}, 2},
		{"a frame that says no time", []Meta{at(8, 0)}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := len(Unrepeated(events, c.shards)); got != c.want || len(events) != 3 {
				t.Errorf("%d are left, want %d", got, c.want)
			}
		})
	}
}
