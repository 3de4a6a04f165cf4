package erasure

import (
	"testing"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

func TestPin(t *testing.T) {
	t.Parallel()
	const s, other = schemas.Shard(1), schemas.Shard(2)
	type shards = map[schemas.Shard]uint64
	for name, c := range map[string]struct {
		state       ledger.State
		bound, tail shards
		pos         uint64
		fixed       bool
		want        bool
		wantBound   uint64
		wantTail    uint64
	}{
		"the end is known":                     {ledger.Waiting, nil, shards{other: 9}, 5, false, true, 0, 5},
		"the end was known further down":       {ledger.Waiting, nil, shards{s: 3}, 5, false, true, 0, 5},
		"the end was known":                    {ledger.Waiting, nil, shards{s: 5}, 5, false, false, 0, 5},
		"the bound is known":                   {ledger.Waiting, nil, shards{s: 3}, 5, true, true, 5, 3},
		"the bound was known":                  {ledger.Waiting, shards{s: 4}, nil, 5, true, false, 4, 0},
		"another process settled it meanwhile": {ledger.Erasing, nil, nil, 5, true, false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := ledger.Erasure{State: c.state, Bounds: c.bound, Tails: c.tail}
			if got := pin(&e, s, c.pos, c.fixed); got != c.want || e.Bounds[s] != c.wantBound || e.Tails[s] != c.wantTail {
				t.Errorf("changed: %t, bounds %v, tails %v", got, e.Bounds, e.Tails)
			}
		})
	}
}
