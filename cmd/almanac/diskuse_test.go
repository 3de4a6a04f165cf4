package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
)

func TestDiskUse(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		err           error
		known, silent bool
	}{
		"it answers":        {known: true},
		"it is silent":      {fmt.Errorf("asked: %w", &embedded.SilentDiskError{Path: "/d", Since: at}), true, true},
		"it cannot be read": {err: errors.New("permission denied")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			use, known := diskUse(3, 10, c.err)
			if known != c.known || (use.SilentSince != nil) != c.silent || use.Free != 3 || use.Total != 10 {
				t.Errorf("%+v, %t", use, known)
			}
			if c.silent && !use.SilentSince.Equal(at) {
				t.Errorf("it is silent since %s, want %s", use.SilentSince, at)
			}
		})
	}
}
