package registry

import "testing"

// Less of a shard than when it left its lane is told, and neither what erasures took nor what an older version noted is.
func TestWentBack(t *testing.T) {
	t.Parallel()
	left := &Fork{LeftHead: 9, LeftRows: 90}
	for name, c := range map[string]struct {
		s          Shard
		head, rows uint64
		want       bool
	}{
		"as it was":               {Shard{Fork: left}, 9, 90, false},
		"more":                    {Shard{Fork: left}, 10, 100, false},
		"emptied":                 {Shard{Fork: left}, 0, 0, true},
		"an older copy":           {Shard{Fork: left}, 8, 80, true},
		"a row less":              {Shard{Fork: left}, 9, 89, true},
		"its end is erased":       {Shard{Fork: left, Floor: 9}, 8, 90, false},
		"its end is lost":         {Shard{Fork: left, Floor: 8}, 8, 90, true},
		"of an older version":     {Shard{Fork: &Fork{}}, 0, 0, false},
		"a shard that forked not": {Shard{}, 0, 0, false},
	} {
		if got := c.s.WentBack(c.head, c.rows); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
