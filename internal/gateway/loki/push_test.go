package loki

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// serve starts the input as the gateway does.
func serve(t *testing.T, p *pool.Pool) *httptest.Server {
	in := New(Config{Pool: p, Topic: "app"})
	mux := http.NewServeMux()
	mux.Handle("POST /loki/api/v1/push", in)
	mux.Handle("POST /t/{topic}/loki/api/v1/push", in)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func send(t *testing.T, url string, headers map[string]string, body []byte) (status int, text string) {
	t.Helper()
	a := inputtest.Send(t, http.MethodPost, url, headers, body)
	return a.Status, string(a.Body)
}

func topic(name string) schemas.Topic { return schemas.Topic{Name: name, Lanes: 1} }

var jsonType = map[string]string{"Content-Type": "application/json"}

func TestPushStoresRecordedRequests(t *testing.T) {
	t.Parallel()
	env := pooltest.Start(t, nil, topic("app"))
	url := serve(t, env.Pool).URL
	for _, name := range []string{"pino-loki.1", "winston-loki.1"} {
		r := inputtest.Recorded(t, name)
		if status, text := send(t, url+r.Path, r.Headers, r.Body); status != http.StatusNoContent || text != "" {
			t.Fatalf("%s: %d %s", name, status, text)
		}
	}
	var got []string
	for _, ev := range env.Events("app") {
		got = append(got, ev.Message)
	}
	if want := "hello é世😀|boom|hello w {\"user\":\"u2\",\"level\":\"info\"}"; strings.Join(got, "|") != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

func TestPushChoosesTheTopic(t *testing.T) {
	t.Parallel()
	env := pooltest.Start(t, nil, topic("app"), topic("web"))
	url := serve(t, env.Pool).URL
	body := func(line string) []byte {
		return []byte(`{"streams":[{"values":[["1795204768142000000","` + line + `"]]}]}`)
	}
	for _, c := range []struct {
		path, tenant, line string
		status             int
	}{
		{"/loki/api/v1/push", "", "default", 204},
		{"/loki/api/v1/push", "fake", "tenant of no topic", 204},
		{"/loki/api/v1/push", "a|b", "tenant that is not a name", 204},
		{"/loki/api/v1/push", "web", "tenant", 204},
		{"/t/web/loki/api/v1/push", "app", "path", 204},
		{"/t/other/loki/api/v1/push", "", "none", 404},
	} {
		if status, text := send(t, url+c.path, map[string]string{"Content-Type": "application/json", "X-Scope-OrgID": c.tenant}, body(c.line)); status != c.status {
			t.Errorf("%s: %d %s, expected %d", c.line, status, text, c.status)
		}
	}
	for name, want := range map[string]string{"app": "default|tenant of no topic|tenant that is not a name", "web": "tenant|path"} {
		var got []string
		for _, ev := range env.Events(name) {
			got = append(got, ev.Message)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s has %q, expected %s", name, got, want)
		}
	}
}

func TestPushTakesProtobuf(t *testing.T) {
	t.Parallel()
	env := pooltest.Start(t, nil, topic("app"))
	body := s2.EncodeSnappy(nil, protobuf(`{app="web",level="info"}`, entry{1795204768, 5, "hello", []rawjson.Pair{{Key: "user_id", Value: "u"}}}))
	if status, text := send(t, serve(t, env.Pool).URL+"/loki/api/v1/push", map[string]string{"Content-Type": "application/x-protobuf"}, body); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, text)
	}
	events := env.Events("app")
	for i := range events {
		events[i].ID = schemas.ID{}
	}
	inputtest.Same(t, events, "ts 2026-11-20T19:59:28.000000005Z\nlevel info\nservice web\nuser_id u\nmessage hello\n")
}

func TestPushRefuses(t *testing.T) {
	t.Parallel()
	env := pooltest.Start(t, nil, topic("app"))
	url := serve(t, env.Pool).URL + "/loki/api/v1/push"
	for name, c := range map[string]struct {
		kind, body string
		status     int
		has        string
	}{
		"some entries": {"application/json", `{"streams":[{"values":[["noon","x"],["1795204768142000000","good"],["-5","old"],["1"]]}]}`, 400, "3 of 4 entries refused, the others are stored: entry 1: bad entry: time \"noon\""},
		"no push":      {"application/json", `[]`, 400, "not a Loki push request"},
		"type":         {"text/plain", `x`, 415, "application/x-protobuf"},
		"a bomb":       {"application/x-protobuf", "\xff\xff\xff\xff\x0f\x00", 413, "limit"},
		"empty":        {"application/json", `{"streams":[]}`, 204, ""},
	} {
		if status, text := send(t, url, map[string]string{"Content-Type": c.kind}, []byte(c.body)); status != c.status || !strings.Contains(text, c.has) {
			t.Errorf("%s: %d %s, expected %d %q", name, status, text, c.status, c.has)
		}
	}
	if events := env.Events("app"); len(events) != 1 || events[0].Message != "good" {
		t.Errorf("%d events are stored, expected the good one", len(events))
	}
}

func TestPushWhileStopping(t *testing.T) {
	t.Parallel()
	env := pooltest.Start(t, nil, topic("app"))
	url := serve(t, env.Pool).URL + "/loki/api/v1/push"
	env.Pool.Drain()
	if status, text := send(t, url, jsonType, []byte(`{"streams":[{"values":[["1795204768142000000","x"]]}]}`)); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, text)
	}
	if events := env.Events("app"); len(events) != 0 {
		t.Errorf("%d events are stored after a refusal", len(events))
	}
}
