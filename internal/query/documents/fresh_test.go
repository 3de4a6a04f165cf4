package documents

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// What was passed up to an end that DOCS lost is not passed when DOCS has grown again: after a
// power failure, or from a backup, the stream keeps its time of creation.
func TestFreshAfterLoss(t *testing.T) {
	r := newRig(t)
	info, err := r.js.Stream(t.Context(), schemas.StreamDocs)
	if err != nil {
		t.Fatal(err)
	}
	was := seenEmpty{created: info.CachedInfo().Created, reconnects: r.js.Conn().Stats().Reconnects, lanes: map[int]emptyUpTo{}}
	for lane := range r.Topic.Lanes {
		was.lanes[lane] = emptyUpTo{0, 5}
	}
	put := func(from, to int) {
		for i := from; i < to; i++ {
			now := time.Now().UnixNano()
			r.put(&document.Record{ID: fmt.Sprintf("abcd000%d", i), Op: schemas.OpStored, Version: 1, Created: now, Changed: now, Body: []byte(`{}`)})
		}
	}
	read := func(want int) {
		t.Helper()
		n := 0
		a, err := r.fresh(t.Context(), &r.Topic, map[int]uint64{}, was, func(*document.Record, bool) { n++ })
		if err != nil || n != want {
			t.Errorf("%d records of %d, %v", n, want, err)
		}
		was = a.empty
	}
	put(0, 4) // the end is below what was passed
	read(4)
	put(4, 6)
	read(6)
}

// What is remembered holds of the same stream, over the same connection, up to its end.
func TestGround(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	g := seenEmpty{noon, 1, map[int]emptyUpTo{0: {2, 5}, 1: {2, 6}}}
	for _, c := range []struct {
		name             string
		created          time.Time
		reconnects, last uint64
		want             int
	}{
		{"the same", noon, 1, 6, 2},
		{"its end was lost", noon, 1, 5, 1},
		{"all was lost", noon, 1, 0, 0},
		{"connected again", noon, 2, 6, 0},
		{"made again", noon.Add(time.Second), 1, 6, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := g.stillHolds(c.created, c.reconnects, c.last); len(got.lanes) != c.want || !got.created.Equal(c.created) || got.reconnects != c.reconnects {
				t.Errorf("%+v", got)
			}
		})
	}
}
