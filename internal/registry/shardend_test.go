package registry

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// The shard whose end is looked at is the one the lane left last.
func TestLastLeft(t *testing.T) {
	at := func(seq uint64) Order { return Order{Point: Point{Seq: seq}} }
	shards := []Shard{
		{ID: 1, Status: Closed, Order: at(1)},
		{ID: 2, Status: Sealed, Order: at(3)},
		{ID: 1<<56 | 3, Status: Closed, Order: at(5)},
		{ID: 4, Status: Dropped, Order: at(6)},
		{ID: 5, Status: Active, Order: at(4)},
	}
	if s, ok := LastLeft(shards, 0, 5); !ok || s.ID != 2 {
		t.Errorf("%v, %v", s.ID, ok)
	}
	if s, ok := LastLeft(shards, 1, 9); !ok || s.ID != 1<<56|3 {
		t.Errorf("%v, %v", s.ID, ok)
	}
	if s, ok := LastLeft(shards, 2, 9); ok {
		t.Errorf("%v", s.ID)
	}
}

// lane draws a lane's shards, oldest first, each left but the last, as a stream
// that lost its end has them: whole, cut, then empty; and erasure records that settled some.
func lane(rt *rapid.T) (shards []Shard, tails map[schemas.Shard]uint64, tallies map[schemas.Shard]ledger.ErasureRecord) {
	tails, tallies = map[schemas.Shard]uint64{}, map[schemas.Shard]ledger.ErasureRecord{}
	n := rapid.IntRange(1, 5).Draw(rt, "shards")
	cut := rapid.IntRange(0, n).Draw(rt, "cut")
	for i := range n {
		s := Shard{ID: schemas.Shard(i + 1), Status: rapid.SampledFrom([]Status{Active, Sealed, Closed, Dropped}).Draw(rt, "status"), Order: Order{Point: Point{Seq: uint64(i)}}}
		until := rapid.Uint64Range(1, 4).Draw(rt, "until")
		if s.LeftAt = until; s.Status != Active {
			s.SealedAt = until
		}
		tail := until
		if i == cut {
			tail = rapid.Uint64Range(0, until).Draw(rt, "tail")
		} else if i > cut {
			tail = 0
		}
		if i == n-1 {
			s.Status, s.LeftAt, s.SealedAt, tail = Active, 0, 0, 0
		}
		record := ledger.ErasureRecord{Shard: s.ID}
		if rapid.Bool().Draw(rt, "settled") {
			for p := tail + 1; p <= until; p++ {
				record.AddPurged(p)
			}
		}
		shards, tails[s.ID], tallies[s.ID] = append(shards, s), tail, record
	}
	return shards, tails, tallies
}

// What a router waits for, a repair finds: were there a state in which one waits and
// the other sees nothing to do, the lane would stop forever. And while a repair has
// not settled the youngest, which it does last, the router waits.
func TestRoutersWaitForWhatRepairsFind(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shards, tails, tallies := lane(rt)
		found := Unsettled(shards, func(id schemas.Shard) uint64 { return tails[id] }, func(id schemas.Shard) ledger.ErasureRecord { return tallies[id] })
		empty := shards[len(shards)-1]
		left, ok := LastLeft(shards, 0, empty.ID)
		record := tallies[left.ID]
		waits := ok && left.LacksEnd(tails[left.ID], &record)
		if waits && !found[left.ID] {
			rt.Fatalf("the router waits for shard %d, a repair finds %v: %+v", left.ID, found, shards)
		}
		if ok && found[left.ID] && !waits {
			rt.Fatalf("shard %d is unsettled and the router goes on: %+v", left.ID, shards)
		}
		for id := range found {
			if tails[id] >= shards[id-1].Until() {
				rt.Fatalf("shard %d has its end", id)
			}
		}
	})
}
