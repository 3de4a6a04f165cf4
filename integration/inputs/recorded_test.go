package inputs

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
)

// TestRecordedRequests sends what real programs sent, and asks for every event.
func TestRecordedRequests(t *testing.T) {
	stream := inputtest.RecordedBytes(t, "rsyslog-rfc5424-octet-counted.tcp.body")
	n := up(t)
	for _, name := range []string{"pino-loki.1", "winston-loki.1", "pino-elasticsearch.1", "rsyslog-omelasticsearch.1", "rsyslog-omelasticsearch.2"} {
		r := inputtest.Recorded(t, name)
		bases := []string{n.HTTP}
		if r.Path == "/_bulk" {
			bases = []string{n.Elastic, n.HTTP + "/elastic"}
		}
		for _, base := range bases {
			req, err := http.NewRequestWithContext(t.Context(), r.Method, base+r.Path, bytes.NewReader(r.Body))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range r.Headers {
				req.Header.Set(k, v)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode/100 != 2 || bytes.Contains(body, []byte(`"errors":true`)) {
				t.Fatalf("%s to %s: %s %s", name, base, resp.Status, body)
			}
		}
	}
	c, err := net.Dial("tcp", n.SyslogTCP)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(stream); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()

	for _, want := range []struct {
		topic, where string
		count        int
		fields       map[string]string
	}{
		{"app", "message = 'hello é世😀'", 1, map[string]string{"level": "info", "service": "probe", "hostname": "vm", "pid": "16765", "user": "u1", "nested.a": "[1,2]", "time": "1795204768142", "ts": "2026-11-20T19:59:28.142000000Z"}},
		{"app", "message = 'boom'", 1, map[string]string{"level": "error", "service": "probe"}},
		{"app", "attributes.user = 'u2'", 1, map[string]string{"level": "info", "service": "probe", "message": `hello w {"user":"u2","level":"info"}`}},
		{"probe", "message = 'es hello'", 2, map[string]string{"level": "info", "level_text": "30", "pid": "16765", "hostname": "vm", "user": "u1", "ts": "2026-11-20T19:59:33.360000000Z"}},
		{"probe", "message = 'hello from logger é'", 2, map[string]string{"level": "notice", "fromhost": "vm", "facility": "user", "timegenerated": "2026-11-20T19:59:48.777997+00:00"}},
		{"probe", "message = ' hello via unix socket'", 2, map[string]string{"level": "warn", "level_text": "warning", "facility": "auth"}},
		{"sys", "message = 'hello from logger é'", 1, map[string]string{"level": "notice", "service": "probe", "host": "vm", "facility": "user", "timeQuality.tzKnown": "1", "timeQuality.isSynced": "0", "ts": "2026-11-20T19:59:48.777540000Z"}},
		{"sys", "message = ' hello via unix socket'", 1, map[string]string{"level": "warn", "facility": "auth"}},
		{"sys", "message = 'structured'", 1, map[string]string{"x@32473.user": "u1"}},
	} {
		for _, ev := range n.found(want.topic, want.where, want.count) {
			ev.has(t, want.fields)
		}
	}
}
