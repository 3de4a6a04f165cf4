package elastic

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
)

// declared knows some topics.
func declared(names ...string) func(string) *schemas.Topic {
	return func(name string) *schemas.Topic {
		for _, n := range names {
			if n == name {
				return &schemas.Topic{Name: n}
			}
		}
		return nil
	}
}

func options(topics ...string) Options { return Options{Topic: declared(topics...), MaxItems: 1000} }

func events(t *testing.T, items []Item) (evs []schemas.Event) {
	t.Helper()
	for _, it := range items {
		if it.Err != nil {
			t.Fatal(it.Err)
		}
		evs = append(evs, it.Event)
	}
	return evs
}

func TestRecordedBulks(t *testing.T) {
	for name, want := range map[string]string{
		"pino-elasticsearch.1": `
ts 2026-11-20T19:59:33.36Z
level info
message es hello
  level_text:int 30
  pid:int 16765
  hostname vm
  user u1
`,
		"rsyslog-omelasticsearch.1": `
ts 2026-11-20T19:59:48.77754Z
level notice
message hello from logger é
  fromhost vm
  facility user
  timegenerated 2026-11-20T19:59:48.777997+00:00
`,
		"rsyslog-omelasticsearch.2": `
ts 2026-11-20T19:59:48.781261Z
level warn
message  hello via unix socket
  fromhost vm
  facility auth
  level_text warning
  timegenerated 2026-11-20T19:59:48.781261+00:00
`,
	} {
		t.Run(name, func(t *testing.T) {
			items, err := Decode(inputtest.Recorded(t, name).Body, options("probe"))
			if err != nil {
				t.Fatal(err)
			}
			inputtest.Same(t, events(t, items), want)
			if items[0].Topic != "probe" || items[0].Action != "index" {
				t.Errorf("%s into %s", items[0].Action, items[0].Topic)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"common schema, nested and dotted",
			`{"create":{"_index":"app-web-2026.11.20","_id":"1"}}` + "\n" +
				`{"@timestamp":"2026-11-20T10:00:00Z","log":{"level":"ERROR"},"service.name":"web","event":{"action":"login"},"user":{"name":"ada"},"trace":{"id":"t"},"message":"m","http":{"status":200}}` + "\n", `
ts 2026-11-20T10:00:00Z
level error
service web
type login
user_id ada
trace_id t
message m
  _id 1
  _index app-web-2026.11.20
  level_text ERROR
  http.status:int 200
`},
		{"carriage returns, blank lines between, no newline at the end", "\r\n{\"index\":{\"_index\":\"app_web\"}}\r\n{\"msg\":\"m\",\"time\":1700000000}\r\n\n" +
			`{"index":{"_index":"app_web","_id":null}}` + "\n" + `{"id":"0190b0c4-0000-7000-8000-000000000001"}`, `
ts 2023-11-14T22:13:20Z
message m

  id 0190b0c4-0000-7000-8000-000000000001
`},
		{"keys beside the action", `{"index":{"_index":"app_web","pipeline":null},"attempts":0}` + "\n{\"a\":1}\n", "  a:int 1\n"},
		{"the path's index", `{"index":{}}` + "\n{\"a\":1}\n", "  a:int 1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options("app_web")
			o.Index = "app_web"
			items, err := Decode([]byte(c.body), o)
			if err != nil {
				t.Fatal(err)
			}
			inputtest.Same(t, events(t, items), c.want)
		})
	}
}

func TestItemsAreRefusedAlone(t *testing.T) {
	body := strings.Join([]string{
		`{"index":{"_index":"app"}}`, `{"a":1}`,
		`{"index":{"_index":"other"}}`, `{"a":2}`,
		`{"create":{"_index":"app"}}`, `{"a":`,
		`{"create":{"_index":"app"}}`, `[]`,
		`{"create":{"_index":"app"}}`, `{"@timestamp":"noon"}`,
		`{"update":{"_index":"app","_id":"7"}}`, `{"doc":{}}`,
		`{"delete":{"_index":"app","_id":"8"}}`,
		`{"create":{}}`, `{}`,
		`{"create":{"_index":"app"}}`, ``,
		`{"create":{"_index":"app"}}`, `{"a":"last"}`, "",
	}, "\n")
	items, err := Decode([]byte(body), options("app"))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		status int
		kind   string
	}{
		{}, {404, "index_not_found_exception"}, {400, "document_parsing_exception"}, {400, "document_parsing_exception"},
		{400, "document_parsing_exception"}, {400, "illegal_argument_exception"}, {400, "illegal_argument_exception"},
		{400, "action_request_validation_exception"}, {400, "document_parsing_exception"}, {},
	}
	if len(items) != len(want) {
		t.Fatalf("%d items, expected %d", len(items), len(want))
	}
	items[0].Event.ID = schemas.DerivedID(1, 2, 3)
	var answer struct {
		Took   int
		Errors bool
		Items  []map[string]struct {
			Index  string `json:"_index"`
			ID     string `json:"_id"`
			Status int
			Error  struct{ Type, Reason string }
		}
	}
	if err := json.Unmarshal(AppendResponse(nil, 7*time.Millisecond, items), &answer); err != nil {
		t.Fatal(err)
	}
	if !answer.Errors || answer.Took != 7 || len(answer.Items) != len(want) {
		t.Errorf("%+v", answer)
	}
	for i, w := range want {
		got := answer.Items[i][items[i].Action]
		if w.status == 0 {
			w.status = http.StatusCreated
		}
		if got.Status != w.status || got.Error.Type != w.kind || (w.kind == "") != (got.Error.Reason == "") {
			t.Errorf("item %d: %+v, expected %+v", i, got, w)
		}
	}
	if id := answer.Items[0]["index"].ID; id != items[0].Event.ID.String() {
		t.Errorf("the first item has the id %q, expected its event's", id)
	}
	if id := answer.Items[5]["update"].ID; id != "7" {
		t.Errorf("the update has the id %q", id)
	}
}

func TestDecodeRefusesBodies(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want error
	}{
		"empty":            {"", ErrBulk},
		"blank":            {"\n\n", ErrBulk},
		"no action":        {`{"a":1}` + "\n{}\n", ErrBulk},
		"two actions":      {`{"index":{},"create":{}}` + "\n{}\n", ErrBulk},
		"an empty action":  {"{}\n{}\n", ErrBulk},
		"no JSON":          {"hello\n", ErrBulk},
		"no document":      {`{"index":{"_index":"app"}}` + "\n", ErrBulk},
		"a metadata array": {`{"index":[]}` + "\n{}\n", ErrBulk},
		"too many":         {strings.Repeat("{\"delete\":{}}\n", 1001), ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if items, err := Decode([]byte(c.body), options("app")); !errors.Is(err, c.want) {
				t.Errorf("%d items, %v", len(items), err)
			}
		})
	}
}

func TestTopicOf(t *testing.T) {
	topics := declared("app", "app_web", "logs_2026")
	for index, want := range map[string]string{
		"app": "app", "app-2026.11.20": "app", "app-2026-11-20": "app", "app.2026.11": "app", "app-2026.11": "app",
		"app-web": "app_web", "app-web-2026.11.20": "app_web", "logs-2026": "logs_2026", "app-2026": "", "ap": "", "": "", "app-20261120": "",
	} {
		got := ""
		if topic := TopicOf(index, topics); topic != nil {
			got = topic.Name
		}
		if got != want {
			t.Errorf("%s names %q, expected %q", index, got, want)
		}
	}
}

func TestContentType(t *testing.T) {
	for accept, want := range map[string]string{
		"":    "application/json",
		"*/*": "application/json",
		"application/vnd.elasticsearch+json; compatible-with=8":                     "application/vnd.elasticsearch+json;compatible-with=8",
		"application/vnd.elasticsearch+json;compatible-with=9, text/plain":          "application/vnd.elasticsearch+json;compatible-with=9",
		"text/plain,application/vnd.elasticsearch+json":                             "application/vnd.elasticsearch+json",
		"application/vnd.elasticsearch+json;compatible-with=8\r\nSet-Cookie: a=b":   "application/vnd.elasticsearch+json",
		"application/vnd.elasticsearch+x-ndjson; compatible-with=8, application/js": "application/json",
	} {
		if got := ContentType(accept); got != want {
			t.Errorf("%q: %q, expected %q", accept, got, want)
		}
	}
}

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		method, path, has string
		ok                bool
	}{
		{"GET", "/", `"number":"8.19.0"`, true}, {"HEAD", "/", "", true}, {"POST", "/", "", false},
		{"GET", "/_license", `"active"`, true}, {"GET", "/_cluster/health", `"green"`, true}, {"GET", "/_cat/health", `"green"`, true},
		{"GET", "/_nodes/http", `"nodes":{}`, true}, {"GET", "/_nodes/_all/http", `"nodes":{}`, true},
		{"HEAD", "/_index_template/t", "", true}, {"GET", "/_index_template/t", `"name":"t"`, true}, {"PUT", "/_index_template/t", `"acknowledged":true`, true},
		{"DELETE", "/_index_template/t", "", false},
		{"PUT", "/_ilm/policy/p", `"acknowledged":true`, true}, {"GET", "/_ilm/policy/p", `"p":`, true}, {"GET", "/_ingest/pipeline/p", `"p":`, true},
		{"POST", "/app/_refresh", `"successful":1`, true}, {"POST", "/_refresh", "", true}, {"GET", "/_data_stream/app", `"name":"app"`, true},
		{"HEAD", "/app", "", true}, {"GET", "/app/_search", "", false}, {"DELETE", "/app", "", false}, {"GET", "/_search", "", false}, {"POST", "/_bulk", "", false},
	} {
		body, ok := Probe(c.method, c.path)
		if ok != c.ok || ok && !strings.Contains(string(Text(body)), c.has) {
			t.Errorf("%s %s: %s, %v", c.method, c.path, Text(body), ok)
		}
	}
}

func TestAppendError(t *testing.T) {
	got := string(AppendError(nil, &Error{400, "parse_exception", `a "b"`}))
	want := `{"error":{"root_cause":[{"type":"parse_exception","reason":"a \"b\""}],"type":"parse_exception","reason":"a \"b\""},"status":400}`
	if got != want {
		t.Errorf("%s, expected %s", got, want)
	}
}

// Whatever comes, each item is an event or a refusal, and the answer is JSON with
// one entry for each.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"index":{"_index":"app","_type":"events"}}` + "\n" + `{"message":"m","@timestamp":"2026-11-20T10:00:00Z","log.level":"INFO"}` + "\n"))
	f.Add([]byte(`{"create":{"_index":"app-2026.11.20","_id":"\ud800"}}` + "\r\n" + `{"a":{"b":[1,2]}}` + "\n" + `{"delete":{"_id":5}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := Decode(body, options("app"))
		if err != nil {
			if !errors.Is(err, ErrBulk) && !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		for i := range items {
			ev, now := &items[i].Event, time.Now().UnixNano()
			err := ev.Validate(now, now)
			if !ev.ID.IsZero() || err != nil && !errors.Is(err, schemas.ErrEventTooLarge) {
				t.Fatalf("id %s: %v", ev.ID, err)
			}
			if (items[i].Err == nil) != (items[i].Topic != "" && items[i].Err == nil) {
				t.Fatalf("item %d has no topic and no refusal", i)
			}
		}
		var answer struct{ Items []any }
		if err := json.Unmarshal(AppendResponse(nil, 0, items), &answer); err != nil || len(answer.Items) != len(items) {
			t.Fatalf("%d items, %d answered: %v", len(items), len(answer.Items), err)
		}
	})
}
