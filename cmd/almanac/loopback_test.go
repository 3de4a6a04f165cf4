package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway/console"
)

// On a machine that others log in to, an up asks them for a secret at each of its ports, and its owner's commands work as before.
func TestLoopbackAsksForTokens(t *testing.T) {
	t.Parallel()
	b := newBox(t, "ALMANAC_LOOPBACK_TOKENS=true")
	b.hostile = true
	s := b.up()
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
	s.printsPageLink(a.HTTP, strings.TrimSpace(string(local)))
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
	b.examined()
	got := b.run("", "gateway", "--insecure", "no-auth", "--nats", "nats://127.0.0.1:1", "--clickhouse", "http://127.0.0.1:1")
	if got.code != exitConfig {
		t.Errorf("with no-auth: exit %d", got.code)
	}
	contains(t, got.err, "loopback_tokens", "no-auth")
}

// printsPageLink runs the command that an up gives for the address of its page, which has the local token; the log does not.
func (s *daemon) printsPageLink(base, token string) {
	t := s.b.t
	t.Helper()
	var link string
	for line := range strings.Lines(s.stderr()) {
		var said struct {
			Message  string `json:"message"`
			PageLink string `json:"page_link"`
		}
		if json.Unmarshal([]byte(line), &said) == nil && said.Message == "ready" {
			link = said.PageLink
		}
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", link).Output()
	if want := base + console.Path + "#token=" + token + "\n"; err != nil || string(out) != want || token == "" {
		t.Errorf("%s prints %q, want %q: %v", link, out, want, err)
	}
	if strings.Contains(s.stderr(), token) {
		t.Error("the local token is in the log")
	}
}

// The file of the local token may have any name.
func TestPageLink(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"plain": "data", "blanks": "my data", "quotes": `it's "mine"`, "a command": "$(touch here) `x`"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), dir)
			if err := os.WriteFile(file, []byte("alm_secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", pageLink("http://127.0.0.1:1/console/", file))
			cmd.Dir = filepath.Dir(file)
			out, err := cmd.Output()
			if files, _ := os.ReadDir(cmd.Dir); err != nil || string(out) != "http://127.0.0.1:1/console/#token=alm_secret\n" || len(files) != 1 {
				t.Errorf("%q, %v, %d files", out, err, len(files))
			}
		})
	}
}
