package main

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
)

// Events of a shard that is not closed are an estimate, and said to be.
func TestPlannedLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for status, want := range map[registry.Status]string{
		registry.Active: "drop 2026-03-04T05:06:07Z: s, about 7 events, later if it gets younger ones",
		registry.Sealed: "drop 2026-03-04T05:06:07Z: s, about 7 events",
		registry.Closed: "drop 2026-03-04T05:06:07Z: s, 7 events",
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			if got := plannedLine(registry.Planned{Shard: "s", Step: registry.DropIt, At: at, Rows: 7, Status: status}); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
