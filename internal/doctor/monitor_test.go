package doctor

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

var testNeeds = NATSNeeds{PayloadBytes: 1 << 20, PendingBytes: 64 << 20, BatchesPerStream: 50, Consumers: 1000, DuplicatesWindow: 2 * time.Minute}

// What a real server says of itself is read, and what it lacks is named.
func TestMonitorOfAServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*server.Options)
		status string
		says   string
	}{
		"as it should be":  {status: OK, says: "writes to disk before it acknowledges"},
		"syncs later":      {change: func(o *server.Options) { o.SyncAlways = false }, status: Fail, says: "sync_interval 2m0s"},
		"small messages":   {change: func(o *server.Options) { o.MaxPayload = 1000 }, status: Fail, says: "max_payload"},
		"slow readers":     {change: func(o *server.Options) { o.MaxPending = 8 << 20 }, status: Warn, says: "max_pending is 8388608"},
		"few consumers":    {change: func(o *server.Options) { o.JetStreamLimits.DefaultMaxConsumers = 7 }, status: Warn, says: "default_max_consumers is 7"},
		"few open batches": {change: func(o *server.Options) { o.JetStreamLimits.MaxBatchInflightPerStream = 3 }, status: Warn, says: "max_inflight_per_stream is 3"},
		"no JetStream":     {change: func(o *server.Options) { o.JetStream = false }, status: Fail, says: "JetStream is off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &server.Options{
				ServerName: "one", Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT, NoSigs: true, NoLog: true,
				JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
			}
			if c.change != nil {
				c.change(o)
			}
			s, err := server.NewServer(o)
			if err != nil {
				t.Fatal(err)
			}
			s.Start()
			t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
			if !s.ReadyForConnections(time.Minute) {
				t.Fatal("the server takes no connections")
			}
			made := &check{cfg: Config{Monitors: []string{"http://" + s.MonitorAddr().String() + "/"}, NATSNeeds: testNeeds}}
			made.monitors(t.Context(), time.Minute)
			if len(made.found) != 1 || made.found[0].Check != "NATS server one" || made.found[0].Status != c.status || !strings.Contains(made.found[0].Found, c.says) || (made.found[0].Do == "") != (c.status == OK) {
				t.Errorf("%+v, want %s, %q", made.found, c.status, c.says)
			}
		})
	}
}

// What answers wrongly, too much or not at all is said of that server alone, and no answer leads elsewhere.
func TestMonitorsThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	const well = `{"server_name":"%s","version":"%s","max_payload":1048576,"jetstream":{"config":{"sync_always":true},"meta":{"leader":"b","replicas":[{"name":"c","current":%t,"offline":%t,"lag":7}]}}}`
	serve := func(varz, healthz string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				t.Error("credentials were sent")
			}
			switch {
			case r.URL.Path == "/healthz":
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = fmt.Fprint(w, healthz)
			case varz == "elsewhere":
				http.Redirect(w, r, "/other", http.StatusFound)
			case r.URL.Path == "/varz":
				_, _ = fmt.Fprint(w, varz)
			default:
				t.Errorf("%s was asked for", r.URL.Path)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	healthy := `{"status":"ok"}`
	for name, c := range map[string]struct {
		at     []string
		status string
		says   string
	}{
		"frozen":           {[]string{"http://" + l.Addr().String()}, Fail, "did not answer within 50ms"},
		"another program":  {[]string{serve(`{"hello":1}`, healthy)}, Fail, "what is not NATS's"},
		"not JSON":         {[]string{serve(`<html>`, healthy)}, Fail, "what is not NATS's"},
		"without an end":   {[]string{serve(`{"server_name":"`+strings.Repeat("x", 2*maxMonitorAnswer)+`"}`, healthy)}, Fail, "what is not NATS's"},
		"a redirect":       {[]string{serve("elsewhere", healthy)}, Fail, "302"},
		"not healthy":      {[]string{serve(fmt.Sprintf(well, "a", "2.15.2", true, false), `{"status":"unavailable","error":"stream SHARDS is not current"}`)}, Fail, "stream SHARDS is not current"},
		"one is away":      {[]string{serve(fmt.Sprintf(well, "a", "2.15.2", false, true), healthy)}, Warn, "the server c is away"},
		"one lags":         {[]string{serve(fmt.Sprintf(well, "a", "2.15.2", false, false), healthy)}, Warn, "c lags by 7"},
		"without a leader": {[]string{serve(`{"server_name":"a","version":"2.15.2","max_payload":1048576,"jetstream":{"config":{"sync_always":true},"meta":{}}}`, healthy)}, Fail, "no leader"},
		"two versions": {[]string{serve(fmt.Sprintf(well, "a", "2.15.2", true, false), healthy), serve(fmt.Sprintf(well, "b", "2.14.0", true, false), healthy)},
			Warn, "they run 2.14.0 and 2.15.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := &check{cfg: Config{Monitors: c.at, NATSNeeds: testNeeds}}
			within := time.Minute
			if name == "frozen" {
				within = 50 * time.Millisecond
			}
			made.monitors(t.Context(), within)
			var wrong []Finding
			for _, f := range made.found {
				if f.Status != OK {
					wrong = append(wrong, f)
				}
			}
			if len(wrong) != 1 || wrong[0].Status != c.status || !strings.Contains(wrong[0].Found, c.says) || wrong[0].Do == "" {
				t.Errorf("%+v, want %s, %q", made.found, c.status, c.says)
			}
		})
	}
}

func TestCheckMonitor(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"http://nats-1:8222": "", "https://nats-1:8222/base": "",
		"nats-1:8222": "monitoring port", "nats://nats-1:4222": "monitoring port", "": "monitoring port", "http://": "monitoring port",
		"http://u:secret@nats-1:8222": "leave it out", "http://u@nats-1:8222": "leave it out", "http://nats-1:8222?x=1": "more than a path",
	} {
		err := CheckMonitor(text)
		if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
