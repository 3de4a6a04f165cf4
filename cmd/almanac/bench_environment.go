package main

import (
	"io"

	"github.com/almanac-events/almanac/internal/bench"
)

// benchEnvironment has the bench's servers on the disk the data would be on.
func benchEnvironment(s *settings, stderr io.Writer) bench.EnvironmentConfig {
	return bench.EnvironmentConfig{NextTo: s.Data, EventsBytes: s.EventsBytes, ShardsBytes: s.ShardsBytes, Log: serverLog(s.logger(stderr))}
}
