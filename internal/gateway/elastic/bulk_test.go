package elastic

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

type answered struct {
	inputtest.Answer
	body struct {
		Errors bool
		Items  []map[string]struct {
			ID     string `json:"_id"`
			Status int
			Error  struct{ Type, Reason string }
		}
	}
}

func send(t *testing.T, method, url string, headers map[string]string, body string) (a answered) {
	t.Helper()
	a.Answer = inputtest.Send(t, method, url, headers, []byte(body))
	_ = json.Unmarshal(a.Body, &a.body) // some answers are lists or text
	return a
}

func topic(name string) schemas.Topic { return schemas.Topic{Name: name, Lanes: 1} }

func serve(t *testing.T, change func(*pool.Config), topics ...schemas.Topic) (*pooltest.Env, string) {
	env := pooltest.Start(t, change, topics...)
	s := httptest.NewServer(New(Config{Pool: env.Pool}))
	t.Cleanup(s.Close)
	return env, s.URL
}

func TestBulkStoresRecordedRequests(t *testing.T) {
	t.Parallel()
	env, url := serve(t, nil, topic("probe"))
	for _, name := range []string{"pino-elasticsearch.1", "rsyslog-omelasticsearch.1", "rsyslog-omelasticsearch.2"} {
		r := inputtest.Recorded(t, name)
		a := send(t, r.Method, url+r.Path, r.Headers, string(r.Body))
		if a.Status != http.StatusOK || a.body.Errors || len(a.body.Items) != 1 || a.body.Items[0]["index"].Status != http.StatusCreated {
			t.Fatalf("%s: %d %s", name, a.Status, string(a.Body))
		}
		if a.Header.Get(ProductHeader) != Product {
			t.Errorf("%s: the product header is %q", name, a.Header.Get(ProductHeader))
		}
		kind := "application/json"
		if name == "pino-elasticsearch.1" {
			kind = "application/vnd.elasticsearch+json;compatible-with=8"
		}
		if got := a.Header.Get("Content-Type"); got != kind {
			t.Errorf("%s: the content type is %q, expected %q", name, got, kind)
		}
	}
	var got []string
	for _, ev := range env.Events("probe") {
		got = append(got, ev.Message)
	}
	if want := "es hello|hello from logger é| hello via unix socket"; strings.Join(got, "|") != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

func TestBulkAnswersEachItem(t *testing.T) {
	t.Parallel()
	env, url := serve(t, nil, topic("app"), topic("web_front"))
	a := send(t, http.MethodPut, url+"/app-2026.11.20/_bulk", nil, strings.Join([]string{
		`{"create":{}}`, `{"@timestamp":"2026-11-20T10:00:00Z","msg":"a"}`,
		`{"index":{"_index":"web-front"}}`, `{"@timestamp":"2026-11-20T10:00:00Z","msg":"b"}`,
		`{"index":{"_index":"nothing"}}`, `{"msg":"c"}`,
		`{"create":{}}`, `{"@timestamp":"2126-11-20T10:00:00Z","msg":"d"}`, "",
	}, "\n"))
	if a.Status != http.StatusOK || !a.body.Errors || len(a.body.Items) != 4 {
		t.Fatalf("%d %s", a.Status, string(a.Body))
	}
	for i, want := range []struct {
		action, kind string
		status       int
	}{{"create", "", 201}, {"index", "", 201}, {"index", "index_not_found_exception", 404}, {"create", "document_parsing_exception", 400}} {
		if got := a.body.Items[i][want.action]; got.Status != want.status || got.Error.Type != want.kind {
			t.Errorf("item %d: %+v", i, got)
		}
	}
	app, web := env.Events("app"), env.Events("web_front")
	if len(app) != 1 || len(web) != 1 {
		t.Fatalf("%d and %d events are stored", len(app), len(web))
	}
	if id := a.body.Items[0]["create"].ID; id != app[0].ID.String() {
		t.Errorf("the item is called %q and its event %s", id, app[0].ID)
	}
	if web[0].Attrs[0].Key != AttrIndex || web[0].Attrs[0].Text() != "web-front" {
		t.Errorf("%+v", web[0].Attrs)
	}
}

// A client's helper sends items of 429 again, and gives up at a status of the whole
// request.
func TestBulkIsBusyItemByItem(t *testing.T) {
	t.Parallel()
	env, url := serve(t, func(c *pool.Config) { c.Hold = time.Millisecond }, topic("app"))
	bulk := `{"create":{"_index":"app"}}` + "\n{\"msg\":\"a\"}\n" + `{"delete":{"_index":"app","_id":"1"}}` + "\n"
	env.Pool.Drain()
	a := send(t, http.MethodPost, url+"/_bulk", nil, bulk)
	if a.Status != http.StatusOK || !a.body.Errors || len(a.body.Items) != 2 || a.Header.Get("Retry-After") == "" {
		t.Fatalf("%d %s", a.Status, string(a.Body))
	}
	if got := a.body.Items[0]["create"]; got.Status != http.StatusTooManyRequests || got.Error.Type != "es_rejected_execution_exception" {
		t.Errorf("%+v", got)
	}
	if got := a.body.Items[1]["delete"]; got.Status != http.StatusBadRequest {
		t.Errorf("%+v", got)
	}
	if events := env.Events("app"); len(events) != 0 {
		t.Errorf("%d events are stored after a refusal", len(events))
	}
}

func TestRequestsRefusedWhole(t *testing.T) {
	t.Parallel()
	_, url := serve(t, nil, topic("app"))
	for name, c := range map[string]struct {
		method, path, encoding, body string
		status                       int
	}{
		"no bulk":         {"POST", "/_bulk", "", "hello\n", 400},
		"empty":           {"POST", "/_bulk", "", "", 400},
		"not gzip":        {"POST", "/_bulk", "gzip", "hello", 400},
		"unknown packing": {"POST", "/_bulk", "br", "hello", 415},
		"a search":        {"POST", "/app/_search", "", "{}", 400},
		"get of bulk":     {"GET", "/_bulk", "", "", 400},
	} {
		headers := map[string]string{}
		if c.encoding != "" {
			headers["Content-Encoding"] = c.encoding
		}
		a := send(t, c.method, url+c.path, headers, c.body)
		var shape struct {
			Error  struct{ Type, Reason string }
			Status int
		}
		if err := json.Unmarshal([]byte(string(a.Body)), &shape); err != nil || a.Status != c.status || shape.Status != c.status || shape.Error.Reason == "" {
			t.Errorf("%s: %d %s (%v)", name, a.Status, string(a.Body), err)
		}
	}
}

func TestProbesOverHTTP(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(New(Config{}))
	t.Cleanup(s.Close)
	for _, c := range []struct{ method, path, accept, has string }{
		{"GET", "/", "", `"number"`}, {"HEAD", "/", "", ""}, {"GET", "/_cat/health", "text/plain", "almanac green"},
		{"GET", "/_cat/health", "application/json", `"green"`}, {"GET", "/_cat/health?format=json", "", `"green"`}, {"PUT", "/_index_template/x", "", "acknowledged"},
	} {
		a := send(t, c.method, s.URL+c.path, map[string]string{"Accept": c.accept}, "")
		if a.Status != http.StatusOK || !strings.Contains(string(a.Body), c.has) || a.Header.Get(ProductHeader) != Product {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.Status, string(a.Body))
		}
	}
}
