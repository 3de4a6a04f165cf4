package inputs

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/api"
	"github.com/almanac-events/almanac/internal/gateway/lokiread"
)

// worst is a request that costs as much as one of its route can.
type worst struct {
	query   url.Values
	body    string
	headers []string
	// path is the whole path in place of the route's with its usual names.
	path string
	// endless: the answer does not end by itself, and is left after its first bytes.
	endless bool
	// heavy: it takes until a bound of half a minute or so, and is asked with ALMANAC_WORST=all alone.
	heavy bool
}

// heavy are requests that take long.
func heavy(all ...worst) []worst {
	for i := range all {
		all[i].heavy = true
	}
	return all
}

func asks(pairs ...string) worst {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Add(pairs[i], pairs[i+1])
	}
	return worst{query: q}
}

func sends(body string, headers ...string) worst { return worst{body: body, headers: headers} }

// slowLines are lines as long as they may be, of which an expression matches none.
func slowLines(param, expression string) worst {
	return worst{query: url.Values{param: {expression}, "format": {"text"}}, body: strings.Repeat(strings.Repeat("x", 250_000)+"\n", 4)}
}

func nested(open, inner, end string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

// Expressions that are as large as they may be sent: in an address 28 KiB, in a body a megabyte.
var (
	manyAnds    = strings.TrimSuffix(strings.Repeat("message matches '(a+)+$' AND ", 750), " AND ")
	manyParens  = nested("(", "level = 'x'", ")", 4500)
	manyNots    = strings.Repeat("NOT ", 6000) + "level = 'x'"
	longList    = "user_id IN ('" + strings.Repeat("u','", 2500) + "u')"
	badRepeats  = "message matches '" + nested("(", "a{1,1000}", "){1,1000}", 6) + "'"
	bodyParens  = nested("(", "level = 'x'", ")", 450_000)
	bodyNots    = strings.Repeat("NOT ", 240_000) + "level = 'x'"
	bodyAnds    = strings.TrimSuffix(strings.Repeat("level = 'x' AND ", 60_000), " AND ")
	deepJSON    = nested(`{"a":`, "1", "}", 100_000)
	deepArrays  = nested("[", "1", "]", 400_000)
	manyKeys    = "{" + strings.TrimSuffix(manyPairs(150_000), ",") + "}"
	allOfTime   = []string{"from", "1970-01-01T00:00:00Z", "to", "2200-01-01T00:00:00Z"}
	sqlHuge     = "SELECT * FROM numbers(100000000000) ORDER BY sipHash64(number) SETTINGS max_threads = 64"
	sqlLongRows = "SELECT repeat('x', 1000000000) FROM numbers(100)"
	sqlDeep     = "SELECT " + nested("(", "1", ")", 400_000)
)

func manyPairs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%q:1,", fmt.Sprint("k", i))
	}
	return b.String()
}

// filters are the worst of a read that takes a filter, with what else it needs.
func filters(more ...string) []worst {
	var out []worst
	for _, where := range []string{manyAnds, manyParens, manyNots, longList, badRepeats} {
		out = append(out, asks(append([]string{"where", where}, more...)...))
	}
	return append(out, asks(append(slices.Clone(allOfTime), more...)...))
}

// expressions are the worst of PromQL.
func expressions(more ...string) (out []worst) {
	for _, e := range []string{
		"max_over_time(up[10y:1ms])", "max_over_time(vector(1)[100y:1s])", "up[10y:1ms]", "quantile_over_time(0.5, up[200000s:1s])",
		"max_over_time(max_over_time(vector(1)[300000s:1s])[300000s:1s])", "sum_over_time((max_over_time(up[12h:1s]))[12h:1s])", "max_over_time(vector(1)[200000s:1s]) + max_over_time(vector(2)[200000s:1s])",
		"up" + strings.Repeat(" or up", 1000), "vector(1)" + strings.Repeat(" or vector(1)", 1000), "up" + strings.Repeat(" + up", 99),
		doubledLabel(40), `label_replace(up, "a", "` + strings.Repeat("x", 20_000) + `", "", "")`, nested("(", "1", ")", 6000), strings.Repeat("-", 20_000) + "1", nested("abs(", "up", ")", 2000),
		`{__name__=~"` + strings.Repeat("(a{1,500}){1,2}", 200) + `"}`, `{__name__=~".+"}`, `count_values("v", {__name__=~".+"})`, "topk(1000000, {__name__=~'.+'})", "max_over_time({__name__=~'.+'}[100y])",
	} {
		out = append(out, asks(append([]string{"query", e}, more...)...))
	}
	return out
}

func doubledLabel(n int) string {
	return nested(`label_join(`, `label_replace(vector(1), "a", "0123456789", "", "")`, `, "a", "", "a", "a")`, n)
}

// assistants are messages as large as they may be: nested, of thousands of calls, and of calls whose answers are large.
func assistants() (out []worst) {
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"topic":"app","limit":10000,"from":"2000-01-01","where":"message matches '(a+)+$'"}}}`
	var calls []string
	for i := range 5000 {
		calls = append(calls, fmt.Sprintf(call, i+1, "search"))
	}
	for _, body := range []string{"[" + strings.Join(calls, ",") + "]", deepJSON, deepArrays, manyKeys, strings.Repeat(" ", 1<<20), fmt.Sprintf(call, 1, "search"),
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":%s}}`, deepJSON)} {
		out = append(out, sends(body, "Content-Type", "application/json", "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-03-26"))
	}
	return out
}

// worstOf has the worst requests that are known of each route. A route without one fails the test.
func worstOf() map[string][]worst {
	selector := func(path string) []worst {
		all := make([]string, 0, 4000)
		for range 400 {
			all = append(all, "match[]", `{__name__=~"[a-z]{1,60}.*"}`)
		}
		return []worst{asks(append(all, "start", "0", "end", "9999999999")...), asks("match[]", `{__name__=~"`+strings.Repeat("[a-z]{900}", 200)+`"}`, "limit", "1")}
	}
	batch := `{"changes":[` + strings.TrimSuffix(strings.Repeat(`{"op":"create","id":"x","path":"a","body":{"a":1}},`, 20_000), ",") + `]}`
	json0 := func(bodies ...string) (out []worst) {
		for _, b := range append(bodies, deepJSON, deepArrays, manyKeys, strings.Repeat(" ", 1<<20)) {
			out = append(out, sends(b, "Content-Type", "application/json"))
		}
		return out
	}
	where := func(format string) (out []string) {
		for _, w := range []string{bodyParens, bodyNots, bodyAnds, manyAnds, badRepeats} {
			out = append(out, strings.ReplaceAll(format, "WHERE", w))
		}
		return out
	}
	align := append(slices.Clone(allOfTime), "metric", "up", "period", "1s")
	all := map[string][]worst{
		"POST /mcp":      assistants(),
		"GET /v1/topics": {{}}, "GET /v1/topics/{topic}": {{}}, "PUT /v1/topics/{topic}": withQuery(json0(`{"pii":[`+strings.Repeat(`{"field":"x","rule":"drop"},`, 30_000)+`{"field":"x","rule":"drop"}]}`, `{"pii":[{"field":"`+strings.Repeat("x", 900_000)+`","rule":"drop"}]}`), "dry_run", ""), "GET /openapi.yaml": {{}}, "GET /metrics": {{}, {}, {}}, "GET /v1/lag": {{}}, "GET /v1/status": {{}}, "GET /v1/shards": {{}, asks("month", "2026-11")},
		"GET /v1/topics/{topic}/events": append(filters("limit", "1000", "order", "asc"), asks("cursor", strings.Repeat("A", 20_000)), asks("fields", strings.Repeat("attributes.x,", 1500)+"ts")),
		"POST /v1/topics/{topic}/events": append(json0("["+strings.Repeat("{},", 300_000)+"{}]", strings.Repeat("{}\n", 300_000), deepJSON+"\n"), sends(strings.Repeat("a,", 500_000)+"\n1", "Content-Type", "text/csv"), sends(strings.Repeat("x", 8<<20), "Content-Type", "text/plain"),
			slowLines("extract", "(?P<a>"+strings.Repeat("(?:.?){1000}", 75)+"\\x00)"), slowLines("user_regex", "((?:.?){900}\\x00)"), slowLines("multiline", "(?:.?){900}\\x00")),
		"GET /v1/topics/{topic}/events/{ts}/{id}": {{}},
		"GET /v1/topics/{topic}/around/{ts}/{id}": filters("n", "200"),
		"GET /v1/topics/{topic}/count":            append(filters(), asks("cursor", strings.Repeat("A", 20_000))),
		"GET /v1/events":                          append(filters("topic", "app", "limit", "1000"), asks("topic", "app", "cursor", strings.Repeat(".", 20_000))),
		"GET /v1/events/count":                    filters("topic", "app"),
		"GET /v1/topics/{topic}/histogram":        append(filters("step", "1ms", "by", "attributes.u"), filters("step", "520w", "by", "attributes.u")...),
		"GET /v1/topics/{topic}/facets":           filters("fields", "message,attributes.u,user_id,level,service,trace_id,span_id,type", "n", "100", "shards", "1000"),
		"GET /v1/topics/{topic}/fields":           {asks("limit", "1000"), asks("prefix", strings.Repeat("a", 20_000))},
		"GET /v1/topics/{topic}/values":           {asks("field", "message", "limit", "1000"), asks("field", "attributes['"+strings.Repeat("a", 20_000)+"']")},
		"GET /v1/topics/{topic}/tail":             {{endless: true}, {query: url.Values{"where": {manyParens}}, endless: true}, {query: url.Values{"since": {"-10000h"}, "where": {manyAnds}}, endless: true}},
		"GET /v1/topics/{topic}/usage":            {{path: "/v1/topics/bills/usage", query: asks("period", "2026-11").query}, {path: "/v1/topics/bills/usage", query: asks(allOfTime...).query}, {path: "/v1/topics/bills/usage", query: asks(append(slices.Clone(allOfTime), "group_by", "space,customer", "cursor", strings.Repeat("A", 20_000))...).query}},
		"GET /v1/topics/{topic}/usage/diffs":      {{path: "/v1/topics/bills/usage/diffs", query: asks(allOfTime...).query}},
		"GET /v1/topics/{topic}/trail":            {{path: "/v1/topics/trail/trail", query: asks("scope", "x", "open", "", "where", manyParens).query}, {path: "/v1/topics/trail/trail", query: asks("scope", strings.Repeat("x", 20_000), "actor", "y").query}},
		"GET /v1/topics/{topic}/series":           {{path: "/v1/topics/cpu/series", query: asks(allOfTime...).query}, {path: "/v1/topics/cpu/series", query: asks("where", manyParens).query}},
		"GET /v1/topics/{topic}/align":            {{path: "/v1/topics/cpu/align", query: asks(align...).query}, {path: "/v1/topics/cpu/align", query: asks(append(align, "align", "p99", "by", strings.Repeat("a,", 5000)+"a")...).query}, {path: "/v1/topics/cpu/align", query: asks("metric", "up", "where", badRepeats).query}},
		"GET /v1/verify":                          {{}}, "POST /v1/verify": {{}, {}},
		"POST /v1/sql":         append(heavy(sends(sqlHuge), sends("SELECT sleep(3) FROM numbers(100) SETTINGS max_block_size = 1")), sends(sqlLongRows), sends(sqlDeep), sends("SELECT "+strings.Repeat("1,", 450_000)+"1")),
		"GET /clickhouse/":     append(heavy(asks("query", sqlHuge)), asks("query", sqlLongRows), asks("query", "SELECT 1", "http_response_headers", "{'Content-Type':'text/html'}")),
		"POST /clickhouse/":    append(heavy(sends(sqlHuge)), sends(sqlDeep), sends(strings.Repeat("x", 15<<20))),
		"GET /clickhouse/ping": {{}}, "GET /v1/erasures": {{}}, "GET /v1/erasures/{id}": {{}}, "POST /v1/erasures/{id}/resume": {{}},
		"POST /v1/erasures":  withQuery(json0(append(where(`{"topics":["app"],"where":"WHERE"}`), `{"users":["`+strings.Repeat(`u","`, 200_000)+`u"]}`)...), "dry_run", ""),
		"POST /v1/replays":   json0(append(where(`{"topic":"app","into":"probe","where":"WHERE"}`), `{"topic":"app","into":"x","rate":1e308}`)...),
		"GET /v1/sql/schema": {{}, {}, {}}, "GET /v1/sql/{id}": {{}}, "DELETE /v1/sql/{id}": {{}},
		"GET /v1/dead": {asks("limit", "1000"), asks("reason", strings.Repeat("x", 20_000))}, "GET /v1/dead/reasons": {{}}, "GET /v1/dead/{seq}": {{path: "/v1/dead/18446744073709551615"}},
		"POST /v1/dead/retry": {asks("topic", "app", "reason", strings.Repeat("x", 20_000))}, "POST /v1/dead/drop": {asks("topic", "app", "seq", "x")},
		"GET /v1/jobs": {{}}, "GET /v1/jobs/{id}": {{}}, "DELETE /v1/jobs/{id}": {{}},
		"GET /v1/documents/{topic}":  append(filters("limit", "1000"), asks("changed_from", "1970-01-01T00:00:00Z")),
		"POST /v1/documents/{topic}": json0(), "POST /v1/documents/{topic}/batch": json0(batch), "POST /v1/documents/{topic}/load": json0(`{"ids":["` + strings.Repeat(`x","`, 200_000) + `x"]}`),
		"GET /v1/documents/{topic}/{id}": {{}}, "PUT /v1/documents/{topic}/{id}": json0(), "DELETE /v1/documents/{topic}/{id}": {{}}, "GET /v1/documents/{topic}/{id}/history": {{}},
		"GET /v1/documents/{topic}/{id}/lock": {{}}, "POST /v1/documents/{topic}/{id}/lock": json0(), "DELETE /v1/documents/{topic}/{id}/lock": {asks("token", "9223372036854775807")},
		"GET /v1/timers": {{}}, "GET /v1/timers/{group}": {asks("limit", "1000", "cursor", strings.Repeat("x", 20_000))}, "POST /v1/timers/{group}": json0(),
		"GET /v1/timers/{group}/config": {{}}, "PUT /v1/timers/{group}/config": json0(), "GET /v1/timers/{group}/{id}": {{}}, "PATCH /v1/timers/{group}/{id}": json0(), "DELETE /v1/timers/{group}/{id}": {{}},
		"POST /v1/timers/{group}/{id}/fire": {{}}, "POST /v1/timers/{group}/{id}/retry": {{}}, "GET /v1/timers/{group}/{id}/history": {{}},
		"GET /v1/alerts": {{}}, "GET /v1/alerts/history": filters("limit", "1000"), "GET /v1/alerts/rules": {{}}, "DELETE /v1/alerts/rules/{group}": {{}},
		"GET /v1/searches": {{}}, "DELETE /v1/searches/{search}": {{}},
		"PUT /v1/searches/{search}":          json0(where(`{"topics":["app","app","app","app","app","app","app","app"],"where":"WHERE"}`)...),
		"POST /v1/alerts/rules/{group}/test": json0(where(`{"rules":[{"alert":"a","topic":"app","window":"24h","condition":"> 1","where":"WHERE"}]}`)...),
		"PUT /v1/alerts/rules/{group}":       json0(where(`{"rules":[{"alert":"a","topic":"app","window":"24h","condition":"> 1","where":"WHERE"}]}`)...),
	}
	const loki = "/loki/api/v1/"
	logQL := func(rest string, more ...string) (out []worst) {
		for _, q := range []string{
			`{}` + strings.Repeat(` | a = "x" or b > 1`, 800), `{} | ` + nested("(", "a=1", ")", 4000), `{} |~ "` + nested("(", "a{1,1000}", "){1,1000}", 6) + `"`, `{}` + strings.Repeat(` |~ "(a+)+$"`, 1200), `{}` + strings.Repeat(` | line_format "{{__line__}}" |~ "(?:.?){1000}y"`, 20),
			`{} | line_format "` + strings.Repeat("{{__line__}}", 1200) + `"`, `sum by (user_id, id, message) (count_over_time({}[20000w]))`, `topk(100000, count_over_time({} | json [5m]))`,
			`quantile_over_time(0.9, {} | json | unwrap status [20000w]) by (id)`, nested("sum(", "count_over_time({}[1m])", ")", 2500), strings.TrimSuffix(strings.Repeat("1 + ", 5000), "+ "),
		} {
			out = append(out, asks(append([]string{"query", q, "start", "0", "end", "4102444800000000000", "limit", "5000"}, more...)...))
		}
		w := asks(append([]string{"query", `{}`, "start", "0", "end", "4102444800000000000", "limit", "5000", "targetLabels", "user_id,message,id"}, more...)...)
		return append(out, w, worst{path: "/t/app" + loki + rest, query: w.query}, sends("query="+url.QueryEscape(nested("(", "1", ")", 400_000)), "Content-Type", "application/x-www-form-urlencoded"))
	}
	all["GET "+loki+"query"], all["GET "+loki+"query_range"] = logQL("query"), logQL("query_range", "step", "1w")
	for _, pattern := range lokiread.Patterns() {
		if rest, ok := strings.CutPrefix(pattern, "POST "+loki); ok && !strings.HasPrefix(rest, "query") {
			all[pattern] = logQL(rest, "match[]", `{}`)[10:11]
		}
	}
	all["GET "+loki+"query_range"] = append(all["GET "+loki+"query_range"], asks("query", `rate({}[1ms])`, "start", "0", "end", "4102444800", "step", "1"), asks("query", `rate({}[9999999h])`, "start", "1764000000", "end", "1764010999", "step", "1"))
	for _, w := range logQL("tail", "delay_for", "5") {
		if w.body != "" {
			continue
		}
		w.endless, w.headers = true, []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
		all["GET "+loki+"tail"] = append(all["GET "+loki+"tail"], w)
	}
	for _, below := range []string{"", "/t/{topic}"} {
		prom := below + "/api/v1/"
		all["GET "+prom+"query"] = expressions("time", "1770000000")
		all["GET "+prom+"query_range"] = append(expressions("start", "1770000000", "end", "1770010999", "step", "1"), asks("query", "up", "start", "0", "end", "1e15", "step", "1"), asks("query", "max_over_time(up[1h:1ms])", "start", "0", "end", "1770000000", "step", "10000000"))
		all["GET "+prom+"series"], all["GET "+prom+"labels"], all["GET "+prom+"label/{name}/values"] = selector("series"), selector("labels"), selector("values")
		all["GET "+prom+"metadata"], all["GET "+prom+"status/buildinfo"], all["GET "+prom+"alerts"] = []worst{{}}, []worst{{}}, []worst{{}}
		all["GET "+prom+"rules"] = append(selector("series"), asks("group_limit", "2147483647", "group_next_token", strings.Repeat("x", 4000)))
		all["GET "+below+"/prometheus/api/v1/rules"], all["GET "+below+"/prometheus/api/v1/alerts"] = all["GET "+prom+"rules"], all["GET "+prom+"alerts"]
		for _, path := range []string{"query", "query_range", "series", "labels"} {
			for _, w := range all["GET "+prom+path] {
				all["POST "+prom+path] = append(all["POST "+prom+path], sends(w.query.Encode(), "Content-Type", "application/x-www-form-urlencoded"))
			}
			if below != "" || path != "query" { // the same handlers as above
				heavy(all["GET "+prom+path][1:]...)
				heavy(all["POST "+prom+path][1:]...)
			}
			if path == "query" {
				all["POST "+prom+path] = append(all["POST "+prom+path], sends("query="+url.QueryEscape(nested("(", "1", ")", 150_000)), "Content-Type", "application/x-www-form-urlencoded"))
			}
		}
	}
	return all
}

func withQuery(all []worst, pairs ...string) []worst {
	for i := range all {
		all[i].query = asks(pairs...).query
	}
	return all
}

// usual are the names in paths.
var usual = strings.NewReplacer("{ts}", "2026-11-20T10:00:00Z", "{id}", "01890000-0000-7000-8000-000000000001", "{seq}", "1", "{group}", "g", "{name}", "job", "{search}", "s")

func (w *worst) address(base, route string) string {
	path := w.path
	if path == "" {
		topic := "app"
		switch {
		case strings.Contains(route, "/v1/documents/"):
			topic = "docs"
		case strings.HasPrefix(route, "/t/"):
			topic = "cpu"
		}
		path = usual.Replace(strings.ReplaceAll(route, "{topic}", topic))
	}
	if len(w.query) > 0 {
		path += "?" + w.query.Encode()
	}
	return base + path
}

// ask sends a request, and says what is wrong with how it was answered.
func (w *worst) ask(ctx context.Context, client *http.Client, method, to string) string {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to, strings.NewReader(w.body))
	if err != nil {
		return err.Error()
	}
	for i := 0; i < len(w.headers); i += 2 {
		req.Header.Set(w.headers[i], w.headers[i+1])
	}
	if w.endless { // answered or not, it ends with its client
		ctx, enough := context.WithTimeout(ctx, 3*time.Second)
		defer enough()
		req = req.WithContext(ctx)
	}
	resp, err := client.Do(req)
	if w.endless && err != nil {
		return ""
	}
	if err != nil {
		return "no answer: " + err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusInternalServerError && resp.Header.Get("X-Clickhouse-Exception-Code") == "" {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return fmt.Sprintf("a fault of the gateway: %s", text)
	}
	if resp.StatusCode == http.StatusRequestHeaderFieldsTooLarge {
		return "" // net/http's own, of plain text
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'"} {
		if got := resp.Header.Get(name); got != want {
			return fmt.Sprintf("%s is %q", name, got)
		}
	}
	if kind := resp.Header.Get("Content-Type"); strings.Contains(kind, "html") || strings.Contains(kind, "xml") {
		return "Content-Type is " + kind
	}
	if !w.endless {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<20)) // an answer that is cut off by a bound is right too
	}
	return ""
}

// The worst requests that are known, of every route, are refused or answered in time. The process is the same
// after them, and its memory stays bounded.
func TestWorstRequests(t *testing.T) {
	n := up(t)
	for _, more := range [][]string{{"docs", "--kind", "document"}, {"trail", "--kind", "audit"}, {"bills", "--kind", "meter"}, {"timers", "--kind", "timer"}} {
		if out, err := n.command(append([]string{"topics", "apply"}, more...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	n.fillWorst()
	table := worstOf()
	doc, err := openapi3.NewLoader().LoadFromData(api.Spec())
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if len(table[method+" "+path]) == 0 {
				t.Errorf("%s %s has no worst request: think of one", method, path)
			}
		}
	}
	for _, route := range gateway.Foreign() { // by GET and POST they are the same; below /t/ too, and pushes are in TestHostileClients
		_, path, _ := strings.Cut(route, " ")
		if !strings.HasPrefix(path, "/t/") && !strings.HasSuffix(path, "/push") && !strings.HasSuffix(path, "/write") && len(table["GET "+path])+len(table["POST "+path]) == 0 {
			t.Errorf("%s has no worst request: think of one", route)
		}
	}
	before, pid := n.resident(), n.PID
	client := &http.Client{Transport: n.authorized(&http.Transport{MaxIdleConnsPerHost: 4})}
	t.Cleanup(client.CloseIdleConnections)
	type one struct {
		method, route string
		worst
	}
	work := make(chan one)
	var all sync.WaitGroup
	for range 3 { // beside each other, as they may come
		all.Go(func() {
			for w := range work {
				if wrong := w.ask(t.Context(), client, w.method, w.address(n.HTTP, w.route)); wrong != "" {
					t.Errorf("%s %s %.120v %.120s: %s", w.method, w.route, w.query, w.body, wrong)
				}
			}
		})
	}
	asked := 0
send:
	for _, route := range slices.Sorted(maps.Keys(table)) {
		method, path, _ := strings.Cut(route, " ")
		for _, w := range table[route] {
			if w.heavy && os.Getenv("ALMANAC_WORST") != "all" {
				continue
			}
			select {
			case work <- one{method, path, w}:
				asked++
			case <-n.ended:
				t.Errorf("the process ended before %s", route)
				break send
			}
		}
	}
	close(work)
	all.Wait()
	select {
	case <-n.ended:
		t.Fatal("the process has ended")
	default:
	}
	after := n.resident()
	t.Logf("%d requests of %d routes; process %d: resident %d MiB before, %d MiB at most", asked, len(table), pid, before>>20, after>>20)
	// The reads hold 512 MiB at most, and what a collection has not taken yet comes on top.
	if limit := before + 900<<20; after > limit {
		t.Errorf("%d MiB resident, expected %d at most", after>>20, limit>>20)
	}
	w := worst{body: `{"message":"after","good":"yes","n":"1"}`}
	if wrong := w.ask(t.Context(), client, http.MethodPost, n.HTTP+"/v1/topics/app/events?ack=stream"); wrong != "" {
		t.Error(wrong)
	}
	n.storedOnce("app", "attributes['good'] = 'yes'", 1)
}

// fillWorst stores something to read: events of many users and texts, and series of a metric.
func (n *node) fillWorst() {
	n.t.Helper()
	var lines strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&lines, "{\"message\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaa %d\",\"level\":\"info\",\"user_id\":\"u-%d\",\"u\":\"%d\"}\n", i, i%500, i)
	}
	w := sends(lines.String(), "Content-Type", "application/x-ndjson")
	if wrong := w.ask(n.t.Context(), http.DefaultClient, http.MethodPost, n.HTTP+"/v1/topics/app/events?ack=stored"); wrong != "" {
		n.t.Fatal(wrong)
	}
	var otlp strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&otlp, `{"attributes":[{"key":"job","value":{"stringValue":"%d"}}],"timeUnixNano":"%d","asDouble":%d},`, i%200, time.Unix(1770000000, 0).Add(-time.Duration(i)*time.Second).UnixNano(), i)
	}
	body := `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"up","gauge":{"dataPoints":[` + strings.TrimSuffix(otlp.String(), ",") + `]}}]}]}]}`
	w = sends(body, "Content-Type", "application/json")
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodPost, n.OTLPHTTP+"/t/cpu/v1/metrics", strings.NewReader(w.body))
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		n.t.Fatalf("points: %s", resp.Status)
	}
}
