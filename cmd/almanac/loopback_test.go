package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded"
)

// On a machine that others log in to, an up asks them for a secret at each of its ports, and its owner's commands work as before.
func TestLoopbackAsksForTokens(t *testing.T) {
	t.Parallel()
	b := newBox(t, "ALMANAC_LOOPBACK_TOKENS=true")
	b.hostile = true
	b.up()
	b.ok("1\n", "send", "app")
	b.inTheEnd(1)
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	local, err := os.ReadFile(filepath.Join(b.data(), embedded.LocalTokenName))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, at, body string }{
		{http.MethodPost, a.HTTP + "/v1/topics/app/events", `{"message":"hi"}`},
		{http.MethodGet, a.HTTP + "/v1/topics/app/events", ""},
		{http.MethodPost, a.HTTP + "/v1/sql", "SELECT 1"},
		{http.MethodGet, a.HTTP + "/metrics", ""},
		{http.MethodPost, a.OTLPHTTP + "/v1/logs", `{}`},
	} {
		for secret, want := range map[string]bool{"": false, strings.TrimSpace(string(local)): true} {
			req, err := http.NewRequestWithContext(t.Context(), c.method, c.at, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if secret != "" {
				req.Header.Set("Authorization", "Bearer "+secret)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if ok := resp.StatusCode == http.StatusOK; ok != want || !ok && resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s, with a secret %t: %s", c.method, c.at, secret != "", resp.Status)
			}
		}
	}
	resp, err := http.Get(a.HTTP + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Errorf("health is %s", resp.Status)
	}
	if nc, err := nats.Connect(a.NATS); err == nil {
		nc.Close()
		t.Error("NATS takes a client without a password")
	}
	b.ok("", "doctor")
	got := b.run("", "gateway", "--insecure", "no-auth", "--nats", "nats://127.0.0.1:1", "--clickhouse", "http://127.0.0.1:1")
	if got.code != exitConfig {
		t.Errorf("with no-auth: exit %d", got.code)
	}
	contains(t, got.err, "loopback_tokens", "no-auth")
}
