package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/send"
)

// TestTroubleNamesARemedy has what a library said of a NATS that went away in words, with what to do.
func TestTroubleNamesARemedy(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nats.ErrReconnectBufExceeded, nats.ErrNoServers, nats.ErrTimeout, nats.ErrDisconnected} {
		s, failed := send.NewStats("", inWords)
		if failed != nil {
			t.Fatal(failed)
		}
		s.Trouble(fmt.Errorf("producer: %w", err))
		if said := s.LastTrouble(); strings.Contains(said, "outbound buffer") || !strings.Contains(said, ": ") || !strings.ContainsAny(said, "`-") {
			t.Errorf("%v is said as %q", err, said)
		}
	}
}
