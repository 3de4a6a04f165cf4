package embedded

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := backoff{first: time.Second, longest: 5 * time.Second}
	for i, step := range []struct{ lived, want time.Duration }{
		{time.Hour, time.Second},
		{0, 2 * time.Second},
		{0, 4 * time.Second},
		{steadyAfter - 1, 5 * time.Second},
		{0, 5 * time.Second},
		{steadyAfter, time.Second},
		{0, 2 * time.Second},
	} {
		if got := b.pause(step.lived); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}
