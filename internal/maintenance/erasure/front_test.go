package erasure

import (
	"slices"
	"testing"
)

func TestOverwriteOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ seqs, want []uint64 }{
		"none":                   {},
		"one":                    {[]uint64{7}, []uint64{7}},
		"the last one goes last": {[]uint64{3, 5, 8, 9}, []uint64{8, 5, 3, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if overwriteOrder(c.seqs); !slices.Equal(c.seqs, c.want) {
				t.Errorf("it is %d, expected %d", c.seqs, c.want)
			}
		})
	}
}
