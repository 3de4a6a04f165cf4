package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/ops"
)

// A process that waits for its servers says so over HTTP from its first moment, and so does almanac ready by its exit code. A
// signal ends it in order, though it never was ready.
func TestReadyWhileItStarts(t *testing.T) {
	t.Parallel()
	http, away := embeddedtest.FreeAddress(t), embeddedtest.FreeAddress(t)
	for name, c := range map[string]struct {
		args []string
		word ops.Word
	}{
		"up":      {[]string{"up", "--ports", "auto", "--otlp-http", "off", "--otlp-grpc", "off", "--clickhouse", "http://almanac@" + away + "/almanac"}, ops.Recovering},
		"router":  {[]string{"router", "--nats", "nats://" + away}, ops.Away},
		"gateway": {[]string{"gateway", "--otlp-http", "off", "--otlp-grpc", "off", "--nats", "nats://" + away, "--clickhouse", "http://almanac@" + away + "/almanac"}, ops.Away},
	} {
		b := newBox(t, "ALMANAC_HTTP="+http) // one after the other
		if r := b.run("", "ready"); r.code != exitFailed || !strings.Contains(r.err, http) || !strings.Contains(r.err, "no process of Almanac answers") {
			t.Errorf("%s, before: exit %d: %s", name, r.code, r.err)
		}
		d := b.background(c.args...)
		embeddedtest.Eventually(t, maxWait, func() error {
			r := b.run("", "ready", "-o", "json")
			var now ops.Readiness
			if err := json.Unmarshal([]byte(r.out), &now); err == nil && r.code == exitFailed && len(now.Reasons) == 1 && now.Reasons[0].Word == c.word {
				return nil
			}
			return fmt.Errorf("%s: exit %d: %s%s", name, r.code, r.out, r.err+d.stderr())
		})
		if r := b.run("", "ready"); r.code != exitFailed || !strings.HasPrefix(r.out, string(c.word)+": ") || r.err != "" {
			t.Errorf("%s: exit %d: %s%s", name, r.code, r.out, r.err)
		}
		if code := d.stop(syscall.SIGTERM); code != exitOK {
			t.Errorf("%s: SIGTERM while it starts: exit %d: %s", name, code, d.stderr())
		}
	}
}

// Where almanac ready asks follows from the settings of the process that it asks.
func TestOwnHTTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    settings
		want string
	}{
		"nothing said":     {settings{}, "http://127.0.0.1:7070"},
		"an address":       {settings{HTTP: "127.0.0.2:99"}, "http://127.0.0.2:99"},
		"all networks":     {settings{HTTP: "0.0.0.0:7071"}, "http://127.0.0.1:7071"},
		"all of IPv6":      {settings{HTTP: "[::]:7071"}, "http://[::1]:7071"},
		"TLS":              {settings{HTTP: ":7072", TLSCert: "a", TLSKey: "b"}, "https://127.0.0.1:7072"},
		"any port, no up":  {settings{HTTP: ":0"}, ""},
		"not an address":   {settings{HTTP: "seven"}, ""},
		"off in the files": {settings{HTTP: settingOff}, "http://127.0.0.1:7070"},
	} {
		c.s.Data = t.TempDir()
		if got, err := c.s.ownHTTP(); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}
