package replay

import (
	"errors"
	"slices"
	"testing"
)

// A stretch whose rows vanish while it is read is not passed over as if it were erased.
func TestEachWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lists  [][]group
		lostAt int // the list after which the shard is found lost, 0 for never
		want   []uint64
		err    error
	}{
		"all of it":                      {[][]group{{{1, 5}, {3, 5}}, {{9, 5}}}, 0, []uint64{1, 3, 9}, nil},
		"its end was erased":             {[][]group{{{1, 5}, {3, 5}}, nil}, 0, []uint64{1, 3}, nil},
		"its end is lost":                {[][]group{{{1, 5}, {3, 5}}, nil}, 2, []uint64{1, 3}, ErrLost},
		"its middle is lost":             {[][]group{{{1, 5}}, {{9, 5}}}, 2, []uint64{1}, ErrLost},
		"all of it is lost":              {[][]group{nil}, 1, nil, ErrLost},
		"nothing of it is the job's own": {[][]group{nil}, 0, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []uint64
			listed := 0
			err := eachWindow(0, 9, func(after uint64) ([]group, error) {
				if len(got) > 0 && after != got[len(got)-1] {
					t.Errorf("a list after position %d, %v were given", after, got)
				}
				listed++
				return c.lists[listed-1], nil
			}, func() error {
				if listed == c.lostAt {
					return ErrLost
				}
				return nil
			}, func(_ uint64, groups []group) error {
				for _, g := range groups {
					got = append(got, g.pos)
				}
				return nil
			})
			if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
				t.Errorf("gave %v and %v, want %v and %v", got, err, c.want, c.err)
			}
		})
	}
}
