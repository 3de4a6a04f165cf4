package tables

import (
	"errors"
	"testing"
)

// Rows whose number changes while they are read are read again: the digest is over as many as it says.
func TestSteady(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counts []uint64 // before the first reading, and after each
		reads  int
		want   uint64
		err    error
	}{
		"nothing changes":               {[]uint64{7, 7}, 1, 7, nil},
		"the table is emptied":          {[]uint64{7, 0, 0}, 2, 0, nil},
		"it is emptied and filled":      {[]uint64{7, 0, 7, 7}, 3, 7, nil},
		"it changes without end":        {[]uint64{7, 6, 5, 4}, digestTries, 0, ErrHeadMoved},
		"an erasure takes some of them": {[]uint64{7, 5, 5}, 2, 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts, reads := c.counts, 0
			rows, err := steady(func() (uint64, error) {
				n := counts[0]
				counts = counts[1:]
				return n, nil
			}, func() error { reads++; return nil })
			if rows != c.want || reads != c.reads || !errors.Is(err, c.err) || len(counts) > 0 {
				t.Errorf("%d rows after %d readings, %v; want %d, %d, %v", rows, reads, err, c.want, c.reads, c.err)
			}
		})
	}
}
