package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestTroubleNamesARemedy has what a library said of a NATS that went away in words, with what to do.
func TestTroubleNamesARemedy(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nats.ErrReconnectBufExceeded, nats.ErrNoServers, nats.ErrTimeout, nats.ErrDisconnected} {
		s := &stats{}
		s.trouble(fmt.Errorf("producer: %w", err))
		if said := s.lastTrouble(); strings.Contains(said, "outbound buffer") || !strings.Contains(said, ": ") || !strings.ContainsAny(said, "`-") {
			t.Errorf("%v is said as %q", err, said)
		}
	}
	if said := (&stats{}).lastTrouble(); said != "" {
		t.Errorf("no trouble is %q", said)
	}
}
