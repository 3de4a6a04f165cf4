package main

import (
	"io"

	"github.com/almanac-events/almanac/internal/bench"
)

// benchHouse has the bench's servers on the disk the data would be on.
func benchHouse(s *settings, stderr io.Writer) bench.HouseConfig {
	return bench.HouseConfig{Beside: s.Data, EventsBytes: s.EventsBytes, ShardsBytes: s.ShardsBytes, Log: serverLog(s.logger(stderr))}
}
