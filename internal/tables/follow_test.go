package tables

import (
	"errors"
	"testing"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	refused, away := errors.New("refused"), errors.New("away")
	for name, c := range map[string]struct {
		inserted []error  // by attempt; beyond them nil
		heads    []uint64 // as read after each attempt; beyond them 7
		readErr  error
		want     uint64
		errs     []error
		attempts int
	}{
		"stored":                          {heads: []uint64{9}, want: 9, attempts: 1},
		"stored, and the answer was lost": {inserted: []error{refused}, heads: []uint64{9}, want: 9, attempts: 1},
		"another was faster":              {inserted: []error{refused}, heads: []uint64{8}, want: 8, attempts: 1},
		"refused":                         {inserted: []error{refused}, errs: []error{refused}, attempts: 1},
		"a consumed token":                {heads: []uint64{7, 7, 9}, want: 9, attempts: 3},
		"refused after a consumed token":  {inserted: []error{nil, refused}, errs: []error{refused}, attempts: 2},
		"tokens without end":              {errs: []error{ErrConsumed}, attempts: MaxAttempts},
		"a head below proves nothing":     {inserted: []error{refused}, heads: []uint64{3}, errs: []error{refused}, attempts: 1},
		"the head cannot be read":         {inserted: []error{refused}, readErr: away, errs: []error{refused, away}, attempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			got, err := Follow(7, func(attempt int) error {
				if attempt != made {
					t.Errorf("attempt %d is counted as %d", made, attempt)
				}
				made++
				if attempt < len(c.inserted) {
					return c.inserted[attempt]
				}
				return nil
			}, func() (uint64, error) {
				if made <= len(c.heads) {
					return c.heads[made-1], c.readErr
				}
				return 7, c.readErr
			})
			if got != c.want || made != c.attempts || (err == nil) != (len(c.errs) == 0) {
				t.Errorf("the head is %d after %d attempts (%v), want %d after %d", got, made, err, c.want, c.attempts)
			}
			for _, want := range c.errs {
				if !errors.Is(err, want) {
					t.Errorf("%v, want %v in it", err, want)
				}
			}
		})
	}
}
