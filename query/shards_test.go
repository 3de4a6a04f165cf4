package query

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
)

func TestRotatedAt(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 12, minute, 0, 0, time.UTC) }
	entries := []registry.Shard{
		{Month: 202610, ID: 1, CreatedAt: at(0)},
		{Month: 202611, ID: 2, CreatedAt: at(1)},
		{Month: 202611, ID: 1<<56 | 3, CreatedAt: at(2)},
		{Month: 202611, ID: 4, CreatedAt: at(3)},
		{Month: 202611, ID: 5, CreatedAt: at(4)},
	}
	for i, want := range []time.Time{{}, at(3), {}, at(4), {}} {
		if got := rotatedAt(entries, i); !got.Equal(want) {
			t.Errorf("shard %d was left at %s, want %s", i, got, want)
		}
	}
}
