package repair

import (
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/reconcile"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// rowFrame is a link of one row.
func rowFrame(pos uint64) link { return link{pos: pos, rows: 1, shardRows: pos, seq: pos} }

// upTo is a row at each position.
func upTo(pos uint64) (out []tables.Group) {
	for p := uint64(1); p <= pos; p++ {
		out = append(out, tables.Group{Pos: p, Rows: 1, Distinct: 1})
	}
	return out
}

// Where SHARDS lost a shard's end, ClickHouse and the closed entry tell of it.
func TestEndOfShard(t *testing.T) {
	c := chain{rowFrame(1), rowFrame(2), rowFrame(3), rowFrame(4)}
	for _, tc := range []struct {
		name   string
		groups []tables.Group
		copies uint64
		entry  registry.Shard
		routed uint64
		do     []Do
		gone   []ledger.Cut
	}{
		{"all stored", upTo(10), 0, registry.Shard{Status: registry.Closed, Rows: 10}, 10, nil, nil},
		{"sealed", upTo(10), 0, registry.Shard{Status: registry.Sealed, Rows: 99}, 10, nil, nil},
		{"rows lost", append(upTo(5), upTo(10)[9]), 0, registry.Shard{Status: registry.Closed, Rows: 10}, 10, []Do{Lost}, nil},
		{"rows doubled", append(append(upTo(8), tables.Group{Pos: 9, Rows: 2, Distinct: 1}), tables.Group{Pos: 10, Rows: 2, Distinct: 1}), 2, registry.Shard{Status: registry.Closed, Rows: 10}, 10, []Do{DropCopies}, nil},
		{"closed with less", upTo(10), 0, registry.Shard{Status: registry.Closed, Rows: 4}, 10, nil, nil},
		{"the last erased", upTo(8), 0, registry.Shard{Status: registry.Active}, 10, nil, []ledger.Cut{{Pos: 10, Rows: 2}}},
		{"closed, the last erased", upTo(8), 0, registry.Shard{Status: registry.Closed, Rows: 8}, 10, nil, []ledger.Cut{{Pos: 10, Rows: 2}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &shardPlan{chain: c, held: c, groups: tc.groups, erasureRecord: &ledger.ErasureRecord{Gone: tc.gone}, plan: &Plan{}}
			_, rest := reconcile.Compare(c.frames(), tc.groups, tc.gone)
			if got := s.end(rest, tc.copies, 10, tc.entry, tc.entry.Status == registry.Closed); got != tc.routed {
				t.Errorf("%s: %d rows were routed, want %d", tc.name, got, tc.routed)
			}
			var do []Do
			for _, a := range s.plan.Actions {
				do = append(do, a.Do)
			}
			if !slices.Equal(do, tc.do) {
				t.Errorf("%s: %v, want %v", tc.name, do, tc.do)
			}
		})
	}
}

// What an erasure took was stored, at a shard's end too, where neither SHARDS nor ClickHouse nor the
// entry's floor tells of it any more. What ClickHouse had and lost is lost, whatever the floor says.
func TestLostFramesBelowErasedEnd(t *testing.T) {
	const id = schemas.Shard(1)
	erased := ledger.ErasureRecord{Gone: []ledger.Cut{{Pos: 10, Rows: 2}}}
	for _, tc := range []struct {
		name          string
		count         tables.Count
		erasureRecord ledger.ErasureRecord
		floor         uint64
		known         checkpoint.Tail
		lost          checkpoint.LostFrames // without its shard
	}{
		{"stored", tables.Count{Head: 10, Rows: 10}, ledger.ErasureRecord{}, 0, checkpoint.Tail{Pos: 10, Rows: 10}, checkpoint.LostFrames{}},
		{"the last erased", tables.Count{Head: 8, Rows: 8}, erased, 10, checkpoint.Tail{Pos: 10, Rows: 10}, checkpoint.LostFrames{}},
		{"and its floor lost", tables.Count{Head: 8, Rows: 8}, erased, 0, checkpoint.Tail{Pos: 10, Rows: 10}, checkpoint.LostFrames{}},
		{"and more was routed", tables.Count{Head: 8, Rows: 8}, erased, 0, checkpoint.Tail{Pos: 12, Rows: 12}, checkpoint.LostFrames{From: 9, To: 12, Rows: 2}},
		{"and ClickHouse went back before that", tables.Count{Head: 5, Rows: 5}, erased, 10, checkpoint.Tail{Pos: 12, Rows: 12}, checkpoint.LostFrames{From: 6, To: 12, Rows: 5}},
		{"and ClickHouse went back", tables.Count{Head: 5, Rows: 5}, erased, 10, checkpoint.Tail{Pos: 10, Rows: 10}, checkpoint.LostFrames{From: 6, To: 10, Rows: 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := &found{
				entries: map[schemas.Shard]registry.Shard{id: {Status: registry.Active, Floor: tc.floor}},
				counts:  map[schemas.Shard]tables.Count{id: tc.count}, erasureRecords: map[schemas.Shard]ledger.ErasureRecord{id: tc.erasureRecord},
			}
			l := &lostLane{known: &checkpoint.Checkpoint{Tails: map[schemas.Shard]checkpoint.Tail{id: tc.known}}}
			got, _, ok := x.lostFrames(schemas.ShardRef{ID: id}, l)
			if got.Shard, got.Found = 0, 0; got != tc.lost || ok != (tc.lost.To > 0) {
				t.Errorf("%s: %+v (%v), want %+v", tc.name, got, ok, tc.lost)
			}
		})
	}
}

// A shard ends where rows were erased, unless it was sealed below: as one that forked is, where ClickHouse had it.
func TestGiven(t *testing.T) {
	erased := &ledger.ErasureRecord{Gone: []ledger.Cut{{Pos: 10, Rows: 2}}}
	for name, tc := range map[string]struct {
		entry registry.Shard
		want  uint64
	}{
		"active":       {registry.Shard{Status: registry.Active}, 10},
		"lost":         {registry.Shard{}, 10},
		"its floor":    {registry.Shard{Status: registry.Active, Floor: 12}, 12},
		"sealed above": {registry.Shard{Status: registry.Sealed, SealedAt: 11}, 10},
		"sealed below": {registry.Shard{Status: registry.Sealed, SealedAt: 9}, 8},
		"closed below": {registry.Shard{Status: registry.Closed, SealedAt: 8}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			if got := given(&tc.entry, erased, 8); got != tc.want {
				t.Errorf("%s: position %d, want %d", name, got, tc.want)
			}
		})
	}
}

// Frames purged from SHARDS below a head that went back are told by the frame
// behind them.
func TestFrontGap(t *testing.T) {
	c := chain{rowFrame(10), rowFrame(11)}
	c[0].prev, c[0].shardBytes = [16]byte{9}, 100
	g, behind, ok := c.front(7, 7, 7)
	if !ok || g.from != 8 || g.to != 9 || behind.rowsOf(g) != 2 {
		t.Fatalf("%+v, %v", g, ok)
	}
	found := []candidate{{link{rows: 1}, [16]byte{7}, 1}, {link{rows: 1}, [16]byte{8}, 1}, {link{rows: 1}, [16]byte{9}, 1}}
	if got := behind.match(g, found, nil); len(got) != 2 || got[0].pos != 8 || got[1].pos != 9 {
		t.Errorf("%+v", got)
	}
	if got := behind.match(g, found[:2], nil); got != nil {
		t.Errorf("frames that do not lead to the next one: %+v", got)
	}
	if _, _, ok := c.front(9, 9, 9); ok {
		t.Error("no gap between 9 and 10")
	}
}

// What was read of an entry after its shard went on is not held against frames that
// were read before; what a rotation saw is corrected where SHARDS lost it.
func TestCorrectedWithARouter(t *testing.T) {
	x := truth{ref: schemas.ShardRef{Month: 202602}, chain: chain{rowFrame(1)}, end: 1}
	lo, hi := schemas.Month(202602).Start(), schemas.Month(202602).End()-1
	sealed := registry.Shard{Status: registry.Sealed, SealedAt: 4}
	x.chain[0].minTs, x.chain[0].maxTs = lo, hi
	for _, tc := range []struct {
		name                string
		entry               registry.Shard
		short, moved, laned bool
		until               uint64
	}{
		{"sealed meanwhile", sealed, false, true, false, 4},
		{"sealed, and cut", sealed, true, false, false, 1},
		{"left, and cut", registry.Shard{Status: registry.Active, LeftAt: 4}, true, false, false, 1},
		{"left meanwhile", registry.Shard{Status: registry.Active, LeftAt: 4}, false, true, false, 4},
		{"its lane's checkpoint comes first", sealed, true, false, true, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x.short, x.moved, x.laned = tc.short, tc.moved, tc.laned
			tc.entry.Month, tc.entry.MinTs, tc.entry.MaxTs = x.ref.Month, lo, hi
			if e, why := x.corrected(tc.entry); e.Until() != tc.until || (len(why) > 0) != (tc.until != 4) {
				t.Errorf("%s: until %d, want %d: %v", tc.name, e.Until(), tc.until, why)
			}
		})
	}
}

// A shard that a router may go on with gets a range that covers whatever follows; one that
// nothing follows gets that of its events.
func TestRangeOfRestored(t *testing.T) {
	month := schemas.Month(202602)
	at := month.Start() + 90
	mark := rowFrame(1)
	mark.cleared = schemas.ClearedDropped
	for _, tc := range []struct {
		name  string
		chain chain
		entry registry.Shard // none: lost
		whole bool
	}{
		{"lost, active", chain{rowFrame(1)}, registry.Shard{}, true},
		{"lost, without frames", nil, registry.Shard{}, false},
		{"lost, cleared", chain{mark}, registry.Shard{}, false},
		{"wrong, active", chain{rowFrame(1)}, registry.Shard{Status: registry.Active}, true},
		{"wrong, sealed", chain{rowFrame(1)}, registry.Shard{Status: registry.Sealed, SealedAt: 1}, false},
		{"wrong, closed", chain{rowFrame(1)}, registry.Shard{Status: registry.Closed, SealedAt: 1, Rows: 1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := truth{ref: schemas.ShardRef{Month: month}, chain: tc.chain, count: tables.Count{Rows: 1, Distinct: 1, Head: 1, MinTs: at, MaxTs: at}, end: 1}
			for i := range x.chain {
				x.chain[i].minTs, x.chain[i].maxTs = at, at
			}
			lo, hi := at, at
			if tc.whole {
				lo, hi = month.Start(), month.End()-1
			}
			e := tc.entry
			if e.Status == "" {
				e = x.entry()
			} else {
				e.MinTs, e.MaxTs = at+1, at-1
				e, _ = x.corrected(e)
			}
			if e.MinTs != lo || e.MaxTs != hi {
				t.Errorf("%s: %d to %d, want %d to %d", tc.name, e.MinTs, e.MaxTs, lo, hi)
			}
			if _, wrong := x.corrected(e); len(wrong) > 0 {
				t.Errorf("%s: set right, it is still wrong: %v", tc.name, wrong)
			}
		})
	}
}

// A router that waits fences its lane again and again, and a plan stays good; one
// that routed makes it void.
func TestSameRouted(t *testing.T) {
	a := checkpoint.Checkpoint{Router: "a", Epoch: 3, Source: 7, Windows: checkpoint.Windows{{Producer: "p", Highest: 7}}}
	b := a
	b.Router, b.Epoch = "b", 9
	if !sameRouted(a, b) {
		t.Error("a fence makes a plan void")
	}
	b.Source = 8
	if sameRouted(a, b) {
		t.Error("what was routed since is not seen")
	}
}
