package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// Every route that reads is a tool, or this says why not. What changes something is none.
func TestEveryReadIsATool(t *testing.T) {
	t.Parallel()
	why := map[*operations.Operation]string{
		&operations.Tail: "it does not end", &operations.Erasures: "it names who was erased", &operations.ShowErasure: "it names who was erased",
		&operations.Jobs: "what runs is for who began it", &operations.Job: "what runs is for who began it",
		&operations.ClickHouse: "sql is the tool", &operations.ClickHousePost: "sql is the tool", &operations.LoadDocuments: "document loads one",
		&operations.Statement: "what runs is for who began it", &operations.DocumentLock: "locks are for programs", &operations.TimerGroup: "timer_groups has the settings",
		&operations.SavedSearches: "they are the page's",
		&operations.TryAlertGroup: "rules and their receivers are of who operates",
	}
	for _, op := range operations.All {
		switch reads := op.Access == operations.Reads; {
		case !reads && op.Tool != "":
			t.Errorf("%s %s changes something, or has nothing to read, and is the tool %s", op.Method, op.Path, op.Tool)
		case reads && (op.Tool == "") == (why[op] == ""):
			t.Errorf("%s %s: tool %q, no tool for %q: one of the two", op.Method, op.Path, op.Tool, why[op])
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tool, given, asks string }{
		"a page":               {"search", `{"topic":"app","where":"level = 'error'","limit":5}`, "GET /v1/topics/app/events?limit=5&where=level+%3D+%27error%27"},
		"a number as text":     {"search", `{"topic":"app","limit":"5"}`, "GET /v1/topics/app/events?limit=5"},
		"names as a list":      {"facets", `{"topic":"app","fields":["level","service"]}`, "GET /v1/topics/app/facets?fields=level%2Cservice"},
		"several values":       {"align", `{"topic":"m","metric":["a","b"],"from":"-1h"}`, "GET /v1/topics/m/align?from=-1h&metric=a&metric=b"},
		"one of several":       {"align", `{"topic":"m","metric":"a","from":"-1h"}`, "GET /v1/topics/m/align?from=-1h&metric=a"},
		"a switch":             {"align", `{"topic":"m","metric":"a","from":"-1h","final":true}`, "GET /v1/topics/m/align?final=true&from=-1h&metric=a"},
		"null is not given":    {"count", `{"topic":"app","from":null}`, "GET /v1/topics/app/count"},
		"nothing":              {"topics", ``, "GET /v1/topics"},
		"a path that climbs":   {"topic", `{"topic":"../erasures"}`, "GET /v1/topics/..%2Ferasures"},
		"dots":                 {"topic", `{"topic":".."}`, `argument topic is "..", which names nothing`},
		"two topics":           {"topic", `{"topic":["a","b"]}`, "argument topic must be one value"},
		"a query in a path":    {"topic", `{"topic":"app?x=1#y"}`, "GET /v1/topics/app%3Fx=1%23y"},
		"a statement":          {"sql", `{"statement":"SELECT 1"}`, "POST /v1/sql SELECT 1"},
		"PromQL":               {"promql", `{"topic":"m","query":"up","start":1,"end":2,"step":"1m"}`, "GET /t/m/api/v1/query_range?end=2&query=up&start=1&step=1m"},
		"what is missing":      {"search", `{}`, "argument topic is missing: The topic"},
		"what is not known":    {"topic", `{"topic":"app","toppic":"x"}`, `argument "toppic" is not known: topic takes topic`},
		"a header is none":     {"document", `{"topic":"d","id":"1","If-None-Match":"x"}`, `argument "If-None-Match" is not known: document takes topic, id, path`},
		"an object":            {"topic", `{"topic":{}}`, "argument topic is an object or a list of lists; it must be a text, a number, true or false, or a list of those"},
		"something else":       {"topic", `[]`, "the arguments are not a JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage"},
		"an empty path":        {"topic", `{"topic":""}`, "argument topic is missing: The topic"},
		"a line end in a path": {"topic", `{"topic":"a\r\nX: y"}`, "GET /v1/topics/a%0D%0AX:%20y"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := tools[c.tool]
			got := ""
			args, err := tool.argumentsOf([]byte(c.given))
			if err == nil {
				var r *http.Request
				if r, err = tool.request("", args); err == nil {
					got = r.Method + " " + r.URL.RequestURI()
					if r.Body != nil {
						body := make([]byte, 100)
						n, _ := r.Body.Read(body)
						got += " " + string(body[:n])
					}
				}
			}
			if err != nil {
				got = err.Error()
			}
			if got != c.asks {
				t.Errorf("%q, want %q", got, c.asks)
			}
		})
	}
}

// connected is a client of an endpoint before a handler.
func connected(t *testing.T, h http.HandlerFunc) (*sdk.ClientSession, *sync.Map) {
	t.Helper()
	var panics sync.Map
	endpoint := New(Config{Version: "v1", Headers: []string{"X-Actor"}, Ask: Inside(func() http.Handler { return h }, func(v any, _ []byte) { panics.Store(v, true) })})
	srv := httptest.NewServer(endpoint)
	t.Cleanup(srv.Close)
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: srv.URL, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session, &panics
}

// text is what a call is answered with, with ! before that of an error.
func text(t *testing.T, session *sdk.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range res.Content {
		out = append(out, c.(*sdk.TextContent).Text)
	}
	all := strings.Join(out, " | ")
	if res.IsError {
		all = "! " + all
	}
	return all
}

// A client lists the tools, and each asks its route with what it was given.
func TestTools(t *testing.T) {
	t.Parallel()
	session, _ := connected(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"path":%q}`, r.URL.Path)
	})
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		schema := tool.InputSchema.(map[string]any)
		args := map[string]any{}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			args[name.(string)] = "x"
		}
		if got := text(t, session, tool.Name, args); !strings.HasPrefix(got, `{"path":"/`) {
			t.Errorf("%s: %s", tool.Name, got)
		}
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint || tool.Description == "" {
			t.Errorf("%s is not said to read alone: %+v", tool.Name, tool)
		}
		for name, p := range schema["properties"].(map[string]any) {
			if p.(map[string]any)["description"] == "" {
				t.Errorf("%s: %s has no description", tool.Name, name)
			}
		}
	}
	if slices.Sort(names); !slices.Equal(names, Names()) {
		t.Errorf("%v", names)
	}
	if session.InitializeResult().ServerInfo.Version != "v1" {
		t.Errorf("%+v", session.InitializeResult())
	}
}

// What is left out of an answer is said, and refusals come with their hints.
func TestAnswers(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 1000)
	session, panics := connected(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/v1/sql":
			w.Header().Set("Content-Type", "application/x-ndjson")
			for r.Context().Err() == nil { // a read ends where its client reads no more
				if _, err := fmt.Fprintf(w, "{%q:1}\n", large); err != nil {
					return
				}
			}
		case "/v1/topics/app/events":
			n := 100
			if v := r.URL.Query().Get("limit"); v != "" {
				_, _ = fmt.Sscan(v, &n)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"events": strings.Repeat(large, n), "cursor": fmt.Sprint("behind ", n)})
		case "/v1/topics/app/count":
			_, _ = fmt.Fprint(w, strings.Repeat(large, 200))
		case "/v1/topics/app/fields":
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"error":{"code":"unknown_topic","message":"topic app is not known","hint":"declare it"}}`)
		case "/t/app/api/v1/query_range":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"parse error"}`)
		case "/v1/topics/app/histogram":
			panic("histogram")
		case "/v1/topics/app/series":
			_, _ = w.Write([]byte("\xff{}"))
		case "/v1/topics":
			w.WriteHeader(http.StatusOK)
		}
	})
	app := map[string]any{"topic": "app"}
	if got := text(t, session, "sql", map[string]any{"statement": "SELECT"}); !strings.Contains(got, " | these are the first 97 lines, 95 KiB: the rest was left out; narrow it by statement") || strings.Count(got, "\n") != 97 {
		t.Errorf("%d bytes, %s", len(got), got[max(0, len(got)-200):])
	}
	if got := text(t, session, "search", app); !strings.Contains(got, `"behind 31"`) || !strings.Contains(got, "the limit was lowered to 31") {
		t.Error(got[:min(len(got), 300)])
	}
	for tool, want := range map[string]string{
		"count":     "! the answer has more than 96 KiB, and none of it is shown: narrow it by from, to, where",
		"fields":    "! 404: topic app is not known: declare it",
		"histogram": "! the answer was cut off: the request failed inside: the log of this process says why",
		"series":    "\uFFFD{}",
	} {
		if got := text(t, session, tool, app); got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
	if _, ok := panics.Load("histogram"); !ok {
		t.Error("the panic was not told")
	}
	if got := text(t, session, "promql", map[string]any{"topic": "app", "query": "(", "start": 1, "end": 2, "step": "1m"}); got != "! 400: parse error" {
		t.Error(got)
	}
	if got := text(t, session, "topics", nil); got != "nothing: the answer is empty" {
		t.Error(got)
	}
	if got := text(t, session, "search", map[string]any{}); !strings.Contains(got, "argument topic is missing") {
		t.Error(got)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "erase"}); err == nil {
		t.Error("a tool that is not there was called")
	}
}

// A client that has as many calls under way as one may is refused more, another is answered beside it, and the calls of a client that
// goes end.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	begun, free, lagging, ended := make(chan struct{}, 2*MaxCalls), make(chan struct{}), make(chan struct{}), make(chan error, 1)
	endpoint := New(Config{Ask: Inside(func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/lag" {
				close(lagging)
				<-r.Context().Done()
				ended <- r.Context().Err()
				return
			}
			begun <- struct{}{}
			<-free
			_, _ = w.Write([]byte("{}"))
		})
	}, func(any, []byte) {})})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint.ServeHTTP(w, r.WithContext(access.With(r.Context(), &access.Principal{Name: r.Header.Get("Who")})))
	}))
	defer srv.Close()
	post := func(ctx context.Context, who, body string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Who", who)
		return http.DefaultClient.Do(req)
	}
	var calls []string
	for i := range MaxCalls + 3 {
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"topics","arguments":{}}}`, i+1))
	}
	other := make(chan error, 1)
	go func() {
		defer close(free)
		for range MaxCalls {
			<-begun
		}
		answered := make(chan error, 1)
		go func() {
			res, err := post(t.Context(), "other", calls[0])
			if err == nil {
				_ = res.Body.Close()
			}
			answered <- err
		}()
		select {
		case <-begun:
			other <- nil
		case err := <-answered:
			other <- fmt.Errorf("another client's call is not begun: %w", err)
		}
	}()
	refused, answered := 0, 0
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, call := range calls {
		all.Go(func() {
			res, err := post(t.Context(), "one", call)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = res.Body.Close() }()
			var got struct {
				Result struct {
					IsError bool
					Content []struct{ Text string }
				}
			}
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if answered++; got.Result.IsError {
				refused++
				if want := "16 calls of assistants are under way: call again in a second"; got.Result.Content[0].Text != want {
					t.Error(got.Result.Content[0].Text)
				}
			}
		})
	}
	all.Wait()
	if err := <-other; err != nil {
		t.Error(err)
	}
	if answered != len(calls) || refused > 3 {
		t.Errorf("%d answered, %d refused", answered, refused)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-lagging
		cancel()
	}()
	if res, err := post(ctx, "one", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lag","arguments":{}}}`); err == nil {
		_ = res.Body.Close()
	}
	if err := <-ended; err == nil {
		t.Error("the call goes on")
	}
}

// What the instructions show is a filter.
func TestExample(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	if _, err := filter.ParseAt(example, &topic, time.Now()); err != nil {
		t.Error(err)
	}
}
