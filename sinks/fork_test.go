package sinks

import (
	"reflect"
	"testing"

	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// What SHARDS and ClickHouse have alike ends at the last insert whose rows and ids are as the
// frames say, with what erasures took.
func TestAgreeing(t *testing.T) {
	t.Parallel()
	whole := func(sum uint64) schemas.IDSums { return schemas.IDSums{From: 1, Sum: sum} }
	frames := []frameEnd{{1, 10, whole(100)}, {2, 20, whole(200)}, {3, 30, whole(300)}, {4, 40, whole(400)}}
	for name, c := range map[string]struct {
		frames []frameEnd
		groups []tables.Group
		gone   []ledger.Cut
		want   uint64
	}{
		"nothing stored":             {frames, nil, nil, 0},
		"all stored, in two inserts": {frames, []tables.Group{{Pos: 2, Rows: 20, IDs: 200}, {Pos: 4, Rows: 20, IDs: 200}}, nil, 4},
		"ClickHouse has more":        {frames, []tables.Group{{Pos: 4, Rows: 40, IDs: 400}, {Pos: 9, Rows: 50, IDs: 1}}, nil, 4},
		"other events of that count": {frames, []tables.Group{{Pos: 2, Rows: 20, IDs: 200}, {Pos: 4, Rows: 20, IDs: 201}}, nil, 2},
		"another count":              {frames, []tables.Group{{Pos: 1, Rows: 10, IDs: 100}, {Pos: 3, Rows: 21, IDs: 200}}, nil, 1},
		"some were erased":           {frames, []tables.Group{{Pos: 2, Rows: 19, IDs: 193}, {Pos: 4, Rows: 20, IDs: 200}}, []ledger.Cut{{Pos: 2, Rows: 1, IDs: 7, Summed: true}}, 4},
		"an erasure without sums":    {frames, []tables.Group{{Pos: 1, Rows: 10, IDs: 100}, {Pos: 2, Rows: 9, IDs: 93}}, []ledger.Cut{{Pos: 2, Rows: 1}}, 1},
		"frames without sums":        {[]frameEnd{{pos: 1, rows: 10}}, []tables.Group{{Pos: 1, Rows: 10, IDs: 100}}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := agreeing(c.frames, c.groups, c.gone); got != c.want {
				t.Errorf("they agree up to %d, want %d", got, c.want)
			}
		})
	}
}

// Frames that ClickHouse lacks are moved, and those that came again are not.
func TestJudgeFork(t *testing.T) {
	t.Parallel()
	j := judgement{at: 2}
	for i, stored := range []bool{true, false, false, true, false} {
		j.take(&schemas.Placed{Pos: uint64(3 + i), Frame: schemas.Frame{Rows: 10}}, stored)
	}
	if want := (judgement{at: 3, move: []ledger.Span{{From: 4, To: 5}, {From: 7, To: 7}}, rows: 30}); !reflect.DeepEqual(j, want) {
		t.Errorf("%+v, want %+v", j, want)
	}
}

// The end of an active shard is compared again after each watch of SHARDS, and where a frame
// comes at a position that seems to be stored.
func TestDoubtful(t *testing.T) {
	t.Parallel()
	s := &state{open: true}
	s.watched(1, mark{pos: 5})
	s.noticed(mark{pos: 5}, 5, t0)
	if s.hinted(9); s.headKnown || !s.behind() {
		t.Fatal("a hint settled a shard whose end was not compared")
	}
	s.stored(outcome{head: mark{pos: 9}, sure: true, watch: 1}, t0)
	if s.behind() {
		t.Fatal("it was compared")
	}
	s.noticed(mark{pos: 6}, 6, t0)
	if !s.behind() || !s.doubtful() {
		t.Error("position 6 came, which ClickHouse had already, and nothing is done")
	}
	s.stored(outcome{head: mark{pos: 9}, sure: true, watch: 1}, t0)
	s.noticed(mark{pos: 10}, 7, t0)
	s.stored(outcome{head: mark{pos: 10}, watch: 1}, t0)
	if s.behind() {
		t.Error("it is stored")
	}
	s.watched(2, mark{pos: 3})
	s.noticed(mark{pos: 3}, 3, t0)
	if s.tail.pos != 3 || !s.behind() {
		t.Errorf("SHARDS went back to 3, and the shard is at %d", s.tail.pos)
	}
	s.stored(outcome{head: mark{pos: 10}, sure: true, watch: 1}, t0)
	if !s.doubtful() {
		t.Error("what was compared before SHARDS went back counts")
	}
}
