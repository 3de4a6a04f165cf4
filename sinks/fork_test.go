package sinks

import (
	"reflect"
	"testing"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// Frames that ClickHouse lacks are moved, and those that came again are not.
func TestExamineFork(t *testing.T) {
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
	s.watched(1, position{pos: 5})
	s.noticed(position{pos: 5}, 5, t0)
	if s.hinted(9); s.headKnown || !s.behind() {
		t.Fatal("a hint settled a shard whose end was not compared")
	}
	s.stored(outcome{head: position{pos: 9}, sure: true, watch: 1}, t0)
	if s.behind() {
		t.Fatal("it was compared")
	}
	s.noticed(position{pos: 6}, 6, t0)
	if !s.behind() || !s.doubtful() {
		t.Error("position 6 came, which ClickHouse had already, and nothing is done")
	}
	s.stored(outcome{head: position{pos: 9}, sure: true, watch: 1}, t0)
	s.noticed(position{pos: 10}, 7, t0)
	s.stored(outcome{head: position{pos: 10}, watch: 1}, t0)
	if s.behind() {
		t.Error("it is stored")
	}
	s.watched(2, position{pos: 3})
	s.noticed(position{pos: 3}, 3, t0)
	if s.tail.pos != 3 || !s.behind() {
		t.Errorf("SHARDS went back to 3, and the shard is at %d", s.tail.pos)
	}
	s.stored(outcome{head: position{pos: 10}, sure: true, watch: 1}, t0)
	if !s.doubtful() {
		t.Error("what was compared before SHARDS went back counts")
	}
}
