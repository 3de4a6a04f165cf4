package repair

import (
	"testing"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A lane of a front whose checkpoint is gone goes on after its last record, counts what was routed, and
// leaves the shards whose next positions were given: ClickHouse has them, or an erasure took them.
func TestLostFrontLane(t *testing.T) {
	t.Parallel()
	const month = schemas.Month(202611)
	stored, erased, dropped, other := schemas.Shard(1), schemas.Shard(2), schemas.Shard(3), schemas.Shard(4)
	f := &found{
		topic:  schemas.Topic{Name: "customers", Kind: kinds.Document, Lanes: 2},
		where:  map[schemas.Shard]schemas.ShardRef{},
		lane:   map[schemas.Shard]int{stored: 1, erased: 1, dropped: 1, other: 0},
		chains: map[schemas.Shard]chain{},
		counts: map[schemas.Shard]tables.Count{stored: {Rows: 11, Head: 4}, other: {Rows: 7, Head: 7}},
		entries: map[schemas.Shard]registry.Shard{
			dropped: {Status: registry.Dropped, SealedAt: 9, DroppedRows: 5}, stored: {Status: registry.Active}, erased: {Status: registry.Active}, other: {Status: registry.Active},
		},
		erasureRecords: map[schemas.Shard]ledger.ErasureRecord{stored: {Gone: []ledger.Cut{{Pos: 3, Rows: 2}}}, erased: {Gone: []ledger.Cut{{Pos: 2, Rows: 3}}}},
		short:          map[schemas.Shard]bool{},
	}
	for id := range f.lane {
		f.where[id] = schemas.ShardRef{Topic: "customers", Month: month, ID: id}
	}
	last := map[schemas.Shard]tables.ShardRecord{stored: {Seq: 13}, other: {Seq: 99}}
	l, low, has := lostFrontLane(f, 1, last)
	if !has || l.cp.Source != 13 || l.cp.Rows != 11+2+5+3 {
		t.Errorf("the lane goes on after record %d with %d rows (%v), want 13 and 21", l.cp.Source, l.cp.Rows, has)
	}
	left := map[schemas.Shard]bool{}
	for _, ref := range l.behind {
		left[ref.ID] = true
	}
	if !left[stored] || !left[erased] || left[other] {
		t.Errorf("it leaves %v", left)
	}
	if low != 0 {
		t.Errorf("all records up to %d are taken as stored, and a shard does not have any", low)
	}
	delete(f.where, erased)
	if _, low, _ := lostFrontLane(f, 1, last); low != 13 {
		t.Errorf("all records up to %d are stored, want 13", low)
	}
	if _, _, has := lostFrontLane(f, 3, last); has {
		t.Error("a lane without a shard was routed")
	}
}

// Of an entry that is there only a range that is too narrow is set right.
func TestWidened(t *testing.T) {
	t.Parallel()
	e := registry.Shard{MinTs: 10, MaxTs: 20, Rows: 3, SealedAt: 5}
	if next, wrong := widened(e, registry.Shard{MinTs: 12, MaxTs: 19, Rows: 9, SealedAt: 9}); wrong || next.Rows != 3 || next.SealedAt != 5 {
		t.Errorf("a range that is wide enough became %+v", next)
	}
	if next, wrong := widened(e, registry.Shard{MinTs: 10, MaxTs: 25}); !wrong || next.MaxTs != 25 || next.Rows != 3 {
		t.Errorf("it became %+v", next)
	}
}

// A message that was routed is not routed again where retention dropped all shards of its month.
func TestTakenByRetention(t *testing.T) {
	t.Parallel()
	const month = schemas.Month(202610)
	src := schemas.Source{Seq: 5, Stored: 50}
	for name, c := range map[string]struct {
		copied checkpoint.Checkpoint
		status []registry.Status
		want   bool
	}{
		"dropped":              {checkpoint.Checkpoint{Source: 9, Stored: 90}, []registry.Status{registry.Dropped, registry.Dropping}, true},
		"one is left":          {checkpoint.Checkpoint{Source: 9, Stored: 90}, []registry.Status{registry.Dropped, registry.Closed}, false},
		"none was there":       {checkpoint.Checkpoint{Source: 9, Stored: 90}, nil, false},
		"not routed":           {checkpoint.Checkpoint{Source: 4, Stored: 40}, []registry.Status{registry.Dropped}, false},
		"nothing tells":        {checkpoint.Checkpoint{}, []registry.Status{registry.Dropped}, false},
		"its number was given": {checkpoint.Checkpoint{Source: 9, Stored: 45}, []registry.Status{registry.Dropped}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &found{copies: map[string]checkpoint.Checkpoint{"0": c.copied}, where: map[schemas.Shard]schemas.ShardRef{}, lane: map[schemas.Shard]int{}, entries: map[schemas.Shard]registry.Shard{}}
			for i, s := range c.status {
				id := schemas.Shard(i + 1)
				f.where[id], f.lane[id], f.entries[id] = schemas.ShardRef{Month: month, ID: id}, 0, registry.Shard{Status: s}
			}
			if got := f.takenByRetention(0, month, src); got != c.want {
				t.Errorf("%s: %v", name, got)
			}
		})
	}
}
