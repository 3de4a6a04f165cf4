package main

import (
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/bench"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// With a certificate who dials the address of the servers speaks TLS, without an option; a connection within the process does not.
// Nothing else of this test binary may use TLS before: Go reads once what it trusts.
func TestCertificate(t *testing.T) {
	t.Parallel()
	embeddedtest.FindEngine(t)
	dir := t.TempDir()
	secure, err := bench.MakeCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.OpenEnvironment(t.Context(), bench.EnvironmentConfig{NextTo: filepath.Join(dir, "data"), Users: true, TLS: secure})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	nc, err := nats.Connect(h.NATSURL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if state, err := nc.TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Errorf("by the address: %v", err)
	}
	if _, err := h.NATS.TLSConnectionState(); err == nil {
		t.Error("the connection within the process speaks TLS")
	}
}
