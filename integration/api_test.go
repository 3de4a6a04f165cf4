package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/api"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Every route and parameter of the specification is used, and every request and answer is
// as the specification says.
func TestAPIContract(t *testing.T) {
	t.Parallel()
	topic := newTopic("app", schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality})
	e := start(t, topic, newTopic("copied"), schemas.NewTopicOf(kinds.Metric, "cpu"),
		schemas.NewTopicOf(kinds.Document, "customers", schemas.Field{Name: "status", Type: schemas.TypeLowCardinality}))
	e.router()
	e.sink()
	base, _ := e.gateway()
	k := newContract(t)
	c := &caller{t, base, &http.Client{Transport: k}}

	writesOverHTTP(t, c)
	c.stored()
	readsOverHTTP(t, c)
	refusalsOverHTTP(t, c)
	seriesOverHTTP(t, c)
	sqlOverHTTP(t, c)
	statementsOverHTTP(t, e, c)
	timersOverHTTP(t, c)
	documentsOverHTTP(t, c)
	usageOverHTTP(t, e, c)
	trailOverHTTP(t, e, c)
	alertsOverHTTP(t, c)
	topicsOverHTTP(t, c)
	searchesOverHTTP(t, c)
	relativePagesOverHTTP(t, c)
	lettersOverHTTP(t, e, c)
	jobsOverHTTP(t, c)
	k.unused()
}

func writesOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, `{"ts":"2026-11-20T10:00:%02dZ","level":%q,"msg":"m-%d <&>","user_id":"u-%d","endpoint":"/a","host":"h-%d"}`+"\n", i, []string{"info", "error"}[i%2], i, i%3, i%2)
	}
	holds(t, c.send(200, "POST", "/v1/topics/app/events?ack=stream&refuse=all&format=ndjson&require_ts=true&service=api&type=t&level=info", lines.String(), "Idempotency-Key", "k-1"), `"accepted":30`)
	holds(t, c.send(202, "POST", "/v1/topics/app/events?ack=none", "{\"ts\":\"2026-11-19T00:00:00Z\",\"msg\":\"later\"}", "Content-Type", "application/x-ndjson"), `"accepted":1`)
	holds(t, c.send(200, "POST", "/v1/topics/app/events?format=text&multiline=%5E%5CS&extract=%28%3FP%3Cverb%3E%5Cw%2B%29&drop_raw=false&user_regex=user%3D%28%5Cw%2B%29&tz=UTC&year=2026", "GET user=x\n", "Content-Type", "text/plain"), `"accepted":1`)
	holds(t, c.send(200, "POST", "/v1/topics/app/events?format=csv&delimiter=%3B&ts_field=at&ts_format=unix&user_field=who", "at;who\n1795100000;u-9\n", "Content-Type", "text/csv"), `"accepted":1`)
}

func readsOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	const span = "from=2026-11-20T09:00:00Z&to=2026-11-20T11:00:00Z"
	holds(t, c.get("/v1/topics"), `"name":"app"`)
	holds(t, c.get("/v1/topics/app"), `"lanes":4`)
	page := c.get("/v1/topics/app/events?" + span + "&limit=2&order=asc&fields=ts,id,message&where=" + url.QueryEscape("level = 'info'"))
	holds(t, page, "m-0 <&>", `"cursor"`)
	unknown := "&where=" + url.QueryEscape("attributes.host = 'h-0' AND attributes.nolabel = 'x'")
	for _, path := range []string{"events?" + span, "count?" + span, "facets?fields=level&" + span} {
		holds(t, c.get("/v1/topics/app/"+path+unknown), "none of the 30 events in this range has attributes.nolabel; ")
	}
	if got := c.get("/v1/topics/app/events?" + span + "&where=" + url.QueryEscape("attributes.host = 'h-9'")); strings.Contains(string(got), "none of the") {
		t.Errorf("an attribute that is there is said not to be: %s", got)
	}
	var first struct {
		Cursor, Back string
		Events       []struct{ Ts, ID string }
	}
	if err := json.Unmarshal(page, &first); err != nil || len(first.Events) != 2 {
		t.Fatalf("%v: %s", err, page)
	}
	holds(t, c.get("/v1/topics/app/events?order=asc&fields=message&where="+url.QueryEscape("level = 'info'")+"&cursor="+first.Cursor), "m-4 <&>")
	holds(t, c.get("/v1/topics/app/count?where="+url.QueryEscape("level = 'info'")+"&cursor="+first.Cursor), `"count":13`)
	holds(t, c.get("/v1/topics/app/count?where="+url.QueryEscape("level = 'info'")+"&cursor="+first.Back), `"count":0`)
	info := "topic=app&topic=copied&where=" + url.QueryEscape("level = 'info'")
	merged := c.get("/v1/events?limit=1&order=asc&fields=ts,id&" + span + "&" + info)
	holds(t, merged, `"topic":"app","event":{"ts":"2026-11-20T10:00:00`, `"topic":"copied","count":0`, `"back"`)
	if err := json.Unmarshal(merged, &first); err != nil {
		t.Fatal(err)
	}
	holds(t, c.get("/v1/events?order=asc&"+info+"&cursor="+first.Cursor), `"count":14`)
	holds(t, c.get("/v1/events/count?"+info+"&cursor="+first.Cursor), `"count":14`)
	holds(t, c.get("/v1/events/count?topic=app&topic=copied&"+span), `"topic":"app","count":30`)
	holds(t, c.send(400, "GET", "/v1/events?topic=app&topic=copied&where="+url.QueryEscape("endpoint = 'a'"), ""), "topic copied: ")
	holds(t, c.send(400, "GET", "/v1/events", "", "Wrong", "1"), "a search is of 1 to 8")
	if err := json.Unmarshal(page, &first); err != nil {
		t.Fatal(err)
	}
	at := first.Events[1].Ts + "/" + first.Events[1].ID
	holds(t, c.get("/v1/topics/app/events/"+at), "m-2 <&>")
	holds(t, c.get("/v1/topics/app/around/"+at+"?n=1&where="+url.QueryEscape("level = 'error'")), "m-1 <&>", "m-2 <&>", "m-3 <&>")
	holds(t, c.get("/v1/topics/app/count?"+span+"&where="+url.QueryEscape("level = 'info'")), `"count":15`)
	sheet := string(c.send(200, "GET", "/v1/topics/app/events?"+span+"&limit=2&order=asc&fields=ts,message,attributes.host&where="+url.QueryEscape("level = 'info'"), "", "Accept", "text/csv"))
	if lines := strings.Split(sheet, "\n"); len(lines) != 4 || lines[0] != "ts,message,attributes.host" || !strings.HasSuffix(lines[1], ",m-0 <&>,h-0") {
		t.Errorf("CSV: %q", sheet)
	}
	holds(t, c.send(200, "GET", "/v1/topics/app/events?"+span+"&limit=1", "", "Accept", "text/csv"), "ts,id,level,", ",attributes,", `"{""host"":""h-`)
	holds(t, c.get("/v1/topics/app/histogram?"+span+"&by=level&step=1h&zone=Europe/Vienna&where="), `"count":30`, `"by":{"error":15,"info":15}`)
	holds(t, c.get("/v1/topics/app/histogram?"+span+"&buckets=5"), `"count":30`, `"step":"30m"`)
	holds(t, c.send(400, "GET", "/v1/topics/app/histogram?"+span+"&buckets=5&step=1h", ""), "left out where step is given")
	holds(t, c.send(400, "GET", "/v1/topics/app/histogram?buckets=5", ""), "needs a range of time")
	holds(t, c.get("/v1/topics/app/facets?"+span+"&fields=level,attributes.host&n=1&shards=100&where="), `"value":"error","count":15`, `"other":15`)
	holds(t, c.get("/v1/topics/app/fields?"+span+"&prefix=attributes.&limit=5"), "attributes.host")
	holds(t, c.get("/v1/topics/app/values?"+span+"&field=user_id&prefix=u-&limit=3"), `"value":"u-0","count":10`)
	holds(t, c.get("/v1/shards?topic=app&month=2026-11"), `"status":"active"`)
	holds(t, c.get("/v1/lag?topic=app"), `"unrouted":0`)
	holds(t, c.get("/v1/status"), `"away":[]`, `"topic":"app"`, `"state_at"`, `"limit_bytes"`, `"clickhouse":"2`, `"nats":"2`, `"disks":[{"server":"ClickHouse","disk":"`, `"disk":"default","free_bytes":`, `"inputs":[{"input":"lines","topic":"app","last_event":"`, `"events":33,"events_per_second":`)
	holds(t, c.send(404, "GET", "/v1/verify?topic=app", ""), `"code":"no_proof"`)
	holds(t, c.send(200, "POST", "/v1/verify?topic=app", ""), `"ok":true`)
	holds(t, c.get("/v1/verify?topic=app"), `"ok":true`)
	holds(t, c.job(c.send(202, "POST", "/v1/verify?topic=app&job", "")), `"ok":true`, `"accepted":`, `"missing":0`, `"faults":0`)
	holds(t, c.get("/v1/jobs?kind=verify&topic=app"), `"kind":"verify"`, `"state":"done"`)
	c.send(404, "POST", "/v1/verify?topic=nope&job", "")
	holds(t, c.job(c.send(202, "POST", "/v1/verify?job", "")), `"ok":true`, `"faults":0`)
	holds(t, c.get("/openapi.yaml"), "openapi: 3")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"topics","arguments":{}}}`
	holds(t, c.send(http.StatusOK, http.MethodPost, "/mcp", list, "Accept", "application/json, text/event-stream"), `"app`)
	tailOverHTTP(t, c)
}

func seriesOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	var lines strings.Builder
	for i, v := range []int{123, 98, 121} {
		fmt.Fprintf(&lines, `{"ts":"2026-02-01T12:04:%02dZ","type":"load","unit":"%%","value":%d,"host":"a","region":"eu"}`+"\n", i, v)
	}
	holds(t, c.send(200, "POST", "/v1/topics/cpu/events?format=ndjson", lines.String()), `"accepted":3`)
	const span = "from=2026-02-01T12:00:00Z&to=2026-02-01T13:00:00Z&metric=load&where=attributes.host='a'"
	holds(t, c.get("/v1/topics/cpu/series?"+span+"&limit=10&wait=1m"), `"labels":{"host":"a","region":"eu"}`, `"more":false`)
	holds(t, c.get("/v1/topics/cpu/align?"+span+"&align=mean&reduce=max&by=region&period=5m&final=true&wait=1m"), `"labels":{"region":"eu"},"unit":"%","points":[{"time":"2026-02-01T12:05:00.000000000Z","value":114}]`)
	holds(t, c.get("/v1/topics/cpu/align?"+span+"&align=summary&period=1h"), `"summary":{"count":3,"mean":114,"sum":342,"min":98,"max":123,"m2":386}`)
	holds(t, c.get("/v1/topics/cpu/align?"+span+"&metric=idle&align=summary&reduce=p50&period=1h"), `"metrics":["load","idle"]`, `"groups":[{"metric":"load","labels":{},"unit":"%","points":[{"time":"2026-02-01T13:00:00.000000000Z","value":121}]}]`)
	holds(t, c.send(400, "GET", "/v1/topics/cpu/align?"+span+"&align=mean&period=90s", ""), "it must be a multiple of 1m0s")
	holds(t, c.send(400, "GET", "/v1/topics/app/series", ""), "this is for topics of kind metric")
}

// tailOverHTTP reads an event of a tail, and goes on after it.
func tailOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	one := func(path, last string) (id, data string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = rest
			}
			if rest, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return id, rest
			}
		}
		t.Fatalf("the tail ended: %v", lines.Err())
		return "", ""
	}
	quiet, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+"/v1/topics/app/tail?where="+url.QueryEscape("message = 'never'"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.http.Do(quiet)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != ": tail\n" { // and not a beat, which comes later
		t.Errorf("a tail without events begins with %q: %v", line, err)
	}
	_ = resp.Body.Close()
	// It is cut before its first event: what comes meanwhile is had from where it began.
	begun := resp.Header.Get(api.HeaderPosition)
	c.send(200, "POST", "/v1/topics/app/events?ack=stream", `{"message":"meanwhile"}`, "Content-Type", "application/x-ndjson")
	meanwhile := "where=" + url.QueryEscape("message = 'meanwhile'")
	_, data := one("/v1/topics/app/tail?"+meanwhile+"&from_pos="+url.QueryEscape(begun), "")
	holds(t, []byte(data), `"message":"meanwhile"`)
	_, data = one("/v1/topics/app/tail?"+meanwhile, begun)
	holds(t, []byte(data), `"message":"meanwhile"`)
	since := "&since=-1h&fields=id&where=" + url.QueryEscape("level = 'error'")
	id, a := one("/v1/topics/app/tail?from_pos="+since, "")
	if id == "" {
		t.Error("an event of a tail has no position")
	}
	if _, b := one("/v1/topics/app/tail?from_pos="+since, id); a == b {
		t.Errorf("%s came again after its position", a)
	}
	place, _, _ := strings.Cut(id, "@")
	holds(t, c.send(400, "GET", "/v1/topics/app/tail", "", "Last-Event-ID", place+"@2026-01-01T00:00:00Z"), `"code":"bad_request"`, "is gone")
}

// trailOverHTTP reads a change and how it ended.
func trailOverHTTP(t *testing.T, e *env, c *caller) {
	t.Helper()
	topic, err := schemas.Topic{Name: "trail", Kind: kinds.Audit}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.reg.Apply(t.Context(), topic, false); err != nil {
		t.Fatal(err)
	}
	event := func(request, state string) string {
		return `{"ts":"2026-02-01T00:00:00Z","type":"change","request_id":"` + request + `","scope":"s","service":"iam","method":"Update","resource_type":"role","resource":"x","user_id":"u","state":"` + state + `","after":{"n":1}}` + "\n"
	}
	holds(t, c.send(200, "POST", "/v1/topics/trail/events?ack=stored", event("r-1", "pre_committed")+event("r-1", "rolled_back")+event("r-2", "pre_committed"), "Content-Type", "application/x-ndjson"), `"accepted":3`)
	span := "&from=2026-01-01&to=2026-03-01"
	holds(t, c.get("/v1/topics/trail/trail?scope=s&request=r-1&history=true"+span), `"state":"rolled_back"`, `"events":2`, `"history":[`, `"after":{"n":1}`)
	holds(t, c.get("/v1/topics/trail/trail?scope=q&scope=s&open=true&open_after=1h"), `"request_id":"r-2"`, `"state":"pre_committed"`)
	var first struct{ Cursor string }
	page := "/v1/topics/trail/trail?scope=s&resource=x&actor=u&actor=v&service=iam&resource_type=role&method=Update&limit=1&where=" + url.QueryEscape("state != 'committed'")
	if err := json.Unmarshal(c.get(page), &first); err != nil || first.Cursor == "" {
		t.Fatalf("%v: no cursor", err)
	}
	holds(t, c.get(page+"&cursor="+first.Cursor), `"events":`)
	c.send(400, "GET", "/v1/topics/trail/trail?request=r-1", "", "Wrong", "yes")
	c.send(400, "GET", "/v1/topics/trail/trail?scope=s", "")
	c.send(400, "GET", "/v1/topics/app/trail?scope=s&request=r-1", "")
	c.send(404, "GET", "/v1/topics/nope/trail?scope=s&request=r-1", "")
}

// alertsOverHTTP declares rules, reads what is known of them, and removes them.
func alertsOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	holds(t, c.get("/v1/alerts/history"), `"alerts":[]`)
	const group = `{"topic":"app","receivers":[{"name":"ops","url":"https://hooks.example.com/"}],"rules":[{"alert":"Many","where":"level = 'error'","window":"1m","condition":">= 5","by":"user_id","labels":{"severity":"page"}}]}`
	holds(t, c.send(200, "PUT", "/v1/alerts/rules/logins?dry_run", group, "Content-Type", "application/json"), `"name":"logins"`, `"window":"1m0s"`)
	holds(t, c.send(200, "POST", "/v1/alerts/rules/logins/test?from=-10m", strings.Replace(group, ">= 5", ">= 1", 1), "Content-Type", "application/json"), `"alerts":[`, `"recorded":[]`, `"left_out":[`)
	c.send(400, "POST", "/v1/alerts/rules/logins/test?from=x", group, "Content-Type", "application/json")
	c.send(404, "POST", "/v1/alerts/rules/logins/test", strings.Replace(group, `"topic":"app"`, `"topic":"nope"`, 1), "Content-Type", "application/json")
	holds(t, c.get("/v1/alerts/rules"), `"groups":[]`)
	holds(t, c.send(400, "PUT", "/v1/alerts/rules/other?dry_run", strings.Replace(group, ">= 5", "5", 1), "Content-Type", "application/json"), "Many", "condition")
	holds(t, c.send(200, "PUT", "/v1/alerts/rules/logins", group, "Content-Type", "application/json"), `"name":"logins"`, `"window":"1m0s"`)
	holds(t, c.get("/v1/alerts/rules"), `"alert":"Many"`, `"url":"https://hooks.example.com/"`)
	holds(t, c.get("/v1/alerts"), `"alerts":[]`, `"topic":"app"`, `"rules":1`)
	holds(t, c.get("/v1/alerts/history?from=2026-01-01&to=2027-01-01&limit=1&where="+url.QueryEscape("type = 'firing'")), `"alerts":[]`)
	c.send(400, "GET", "/v1/alerts/history?cursor=x", "")
	holds(t, c.send(400, "PUT", "/v1/alerts/rules/other", group[:1]+`"name":"logins",`+group[1:], "Content-Type", "application/json"), "logins")
	holds(t, c.send(400, "PUT", "/v1/alerts/rules/other", `{"rules":[{"record":"job:up:sum","expr":"up","topic":"app"}]}`, "Wrong", "yes"), "job:up:sum", "an expression is over a topic of kind metric")
	holds(t, c.send(400, "PUT", "/v1/alerts/rules/other", group[:1]+`"limit":5,`+group[1:], "Wrong", "yes"), "limit is of groups whose rules are over an expression")
	holds(t, c.send(400, "PUT", "/v1/alerts/rules/other", strings.Replace(group, ">= 5", "5", 1), "Content-Type", "application/json"), "Many", "condition")
	c.send(404, "PUT", "/v1/alerts/rules/other", strings.Replace(group, `"topic":"app"`, `"topic":"nope"`, 1), "Content-Type", "application/json")
	c.send(204, "DELETE", "/v1/alerts/rules/logins", "")
	holds(t, c.send(404, "DELETE", "/v1/alerts/rules/logins", ""), "unknown_group")
}

// usageOverHTTP bills a month.
func usageOverHTTP(t *testing.T, e *env, c *caller) {
	t.Helper()
	if _, _, err := e.reg.Apply(t.Context(), meterTopic(t, "usage"), false); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for range 3 {
		for i, d := range []string{`"2026-02-01T00:00:00Z","delta":100`, `"2026-02-10T12:00:00Z","delta":50`, `"2026-02-20T00:00:00Z","delta":-30`} {
			fmt.Fprintf(&lines, `{"type":"bytes","provider":"p","space":"s1","user_id":"u","cause":"c-%d","ts":%s}`+"\n", i, d)
		}
	}
	holds(t, c.send(200, "POST", "/v1/topics/usage/events?ack=stored", lines.String(), "Content-Type", "application/x-ndjson"), `"accepted":9`)
	const february = "?from=2026-02-01&to=2026-03-01&provider=p&space=s1&meter=bytes&measure=integral&wait=30s"
	holds(t, c.get("/v1/topics/usage/usage"+february), `"usage":"298512000000"`, `"size_end":"120"`, `"causes":3`, `"repeats":6`)
	holds(t, c.get("/v1/topics/usage/usage?from=2026-02-01&to=2026-03-01&customer=u&group_by=customer&wait=0"), `"customer":"u"`, `"usage":"298512000000"`)
	page := c.get("/v1/topics/usage/usage/diffs" + february + "&limit=2")
	holds(t, page, `"cause":"c-0"`, `"delta":"50"`, `"cursor"`)
	var first struct{ Cursor string }
	if err := json.Unmarshal(page, &first); err != nil {
		t.Fatal(err)
	}
	holds(t, c.get("/v1/topics/usage/usage/diffs"+february+"&cursor="+first.Cursor), `"delta":"-30"`)
	holds(t, c.get("/v1/topics/usage/usage/diffs?from=2026-02-01&to=2026-03-01&customer=u"), `"cause":"c-2"`)
	holds(t, c.get("/v1/topics/usage/usage?space=s1&at=2026-02-10T11:59:59.999Z&wait=0"), `"size":"100"`, `"causes":1`)
	holds(t, c.get("/v1/topics/usage/usage?space=s1&at=2026-02-10T12:00:00Z&group_by=space"), `"space":"s1"`, `"size":"150"`)
	c.send(400, "GET", "/v1/topics/usage/usage?at=2026-02-10&measure=sum", "", "Wrong", "yes")
	days := c.get("/v1/topics/usage/usage" + february + "&group_by=day&limit=27")
	holds(t, days, `"from":"2026-02-27`, `"cursor"`)
	if err := json.Unmarshal(days, &first); err != nil {
		t.Fatal(err)
	}
	last := c.get("/v1/topics/usage/usage" + february + "&group_by=day&limit=27&cursor=" + first.Cursor)
	holds(t, last, `"from":"2026-02-28`)
	if bytes.Contains(last, []byte(`"cursor"`)) || bytes.Count(last, []byte(`"size_start"`)) != 1 {
		t.Errorf("the last page is %s", last)
	}
	holds(t, c.get("/v1/topics/usage/usage?at=2026-02-10T12:00:00Z&group_by=space&limit=1&cursor="), `"space":"s1"`, `"size":"150"`)
	c.send(400, "GET", "/v1/topics/usage/usage"+february+"&group_by=space&cursor="+first.Cursor, "", "Wrong", "yes")
	kept := meterTopic(t, "kept")
	kept.KeepDays = 30
	if _, _, err := e.reg.Apply(t.Context(), kept, false); err != nil {
		t.Fatal(err)
	}
	holds(t, c.send(200, "POST", "/v1/topics/kept/events", `{"ts":"2026-02-01T00:00:00Z","type":"bytes","provider":"p","space":"s1","cause":"c-1","delta":1,"user_id":"u"}`, "Content-Type", "application/x-ndjson"), `"accepted":1`)
	holds(t, c.get("/v1/topics/kept/usage?from=2026-01-01&to=now"), `"too_late":{"diffs":1,"months":["2026-02"]}`)
	for path, status := range map[string]int{"usage?from=2026-02-01": 400, "usage?from=2026-02-01&to=2026-03-01&group_by=spice": 400, "usage?from=2026-02-01&to=2026-03-01&wait=2h": 400} {
		c.send(status, "GET", "/v1/topics/usage/"+path, "", "Wrong", "yes")
	}
	c.send(400, "GET", "/v1/topics/app/usage?from=2026-02-01&to=2026-03-01", "")
	c.send(404, "GET", "/v1/topics/nope/usage?from=2026-02-01&to=2026-03-01", "")
}

func refusalsOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"/v1/topics/nope": {404, "unknown_topic"}, "/v1/topics/nope/events": {404, "unknown_topic"}, "/v1/topics/app/events?limit=0": {400, "bad_parameter"},
		"/v1/topics/app/count?form=x": {400, "unknown_parameter"}, "/v1/topics/app/events?where=" + url.QueryEscape("level ="): {400, "bad_request"},
		"/v1/topics/app/facets": {400, "bad_request"}, "/v1/topics/app/values": {400, "bad_request"}, "/v1/topics/app/events?cursor=x": {400, "bad_request"},
		"/v1/topics/app/events/2026-11-20T10:00:00Z/0193a1b2-0000-7000-8000-000000000001": {404, "no_such_event"},
		"/v1/jobs/0000000000000000": {404, "no_such_job"}, "/v1/erasures/none": {404, "no_such_erasure"}, "/v1/dead/4711": {404, "no_such_dead_letter"},
		"/v1/shards?month=x": {400, "bad_request"}, "/v1/verify?topic=nope": {404, "unknown_topic"}, "/v1/lag?topic=nope": {404, "unknown_topic"},
	} {
		holds(t, c.send(want.status, "GET", path, "", "Wrong", "1"), `"code":"`+want.code+`"`)
	}
	for path, bodies := range map[string][]string{
		"/v1/erasures": {"x", `{"topic":"app"}`, `{"topic":"app","user":"u"}`, `{"topic":"app","users":["u"],"from":"yesterday"}`},
		"/v1/replays":  {"", `{"topic":"app"}`, `{"topic":"app","into":"-"}`, `{"topic":"app","into":"$SYS.x"}`, `{"topic":"app","into":"copied","speed":-1}`, `{"topic":"app","into":"copied","order":"up"}`},
		"/v1/sql":      {"", "DROP TABLE app", "SELECT nope FROM app"}, "/v1/dead/retry": {""}, "/v1/topics/app/events?ack=soon": {"{}"},
	} {
		for _, body := range bodies {
			holds(t, c.send(400, "POST", path, body, "Wrong", "1"), `"code":"bad_`)
		}
	}
	holds(t, c.send(400, "POST", "/v1/topics/app/events?refuse=all&format=ndjson", "{\"msg\":\"a\"}\nnot json\n", "Content-Type", "application/x-ndjson"), `"refused_total":1`, `"line":2`)
	holds(t, c.send(404, "POST", "/v1/erasures", `{"topic":"nope","users":["u"]}`), "unknown_topic")
}

func sqlOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	if a := c.send(400, "POST", "/v1/sql", "SELCT 1"); len(a) > 600 || !strings.Contains(string(a), "SELCT") {
		t.Errorf("a typing error is answered with %d bytes: %.200s", len(a), a)
	}
	for format, want := range map[string]string{
		"": `{"n":15}`, "CSV": "15\n", "JSON": `"n": 15`, "TSVWithNames": "n\n15\n", "Parquet": "PAR1", "Pretty": "15",
	} {
		holds(t, c.send(200, "POST", "/v1/sql?format="+format, "SELECT count() AS n FROM app WHERE level = 'error'"), want)
	}
	if got := string(c.get("/clickhouse/ping")); got != "Ok.\n" {
		t.Errorf("ping: %q", got)
	}
	if got := string(c.get("/clickhouse/?query=" + url.QueryEscape("SELECT count() FROM app WHERE level = 'error'"))); got != "15\n" {
		t.Errorf("GET: %q", got)
	}
	if got := string(c.send(200, "POST", "/clickhouse/?query=SELECT&param_a=7&query_id=mine", " {a:UInt8} + 1 FORMAT CSV")); got != "8\n" {
		t.Errorf("POST: %q", got)
	}
	for name, want := range map[string]struct {
		status int
		text   string
	}{"clickhouse-js.2": {200, "{\"1\":1}\n"}, "clickhouse-js.1": {404, "UNKNOWN_TABLE"}} { // as ClickHouse's own client asked
		r := inputtest.Recorded(t, name)
		got := inputtest.Send(t, r.Method, c.base+"/clickhouse"+r.Path, r.Headers, r.Body)
		if got.Status != want.status || !strings.Contains(string(got.Body), want.text) {
			t.Errorf("%s: %d %s, want %d with %q", name, got.Status, got.Body, want.status, want.text)
		}
	}
	for _, sql := range []string{"INSERT INTO app (message) VALUES ('x')", "DROP TABLE app", "SELECT 1 SETTINGS readonly = 0", "SYSTEM SHUTDOWN"} {
		for _, more := range []string{"", "&readonly=0", "&user=default&password="} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+"/clickhouse/?"+strings.TrimPrefix(more, "&"), strings.NewReader(sql))
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode < 400 || resp.Header.Get("X-ClickHouse-Exception-Code") == "" {
				t.Errorf("%s%s: %d %s", sql, more, resp.StatusCode, got)
			}
		}
	}
}

// statementsOverHTTP cancels a statement, which ends ClickHouse's work for it.
func statementsOverHTTP(t *testing.T, e *env, c *caller) {
	t.Helper()
	c.send(200, "POST", "/v1/sql", "SELECT count() FROM app WHERE message != ''", "X-Request-Id", "s-short")
	holds(t, c.get("/v1/sql/s-short"), `"state":"done"`, `"answer_bytes":`, `"read":{"rows":`)
	holds(t, c.send(404, "GET", "/v1/sql/s-none", ""), "no_such_statement")
	var asked sync.WaitGroup
	asked.Go(func() {
		holds(t, c.send(409, "POST", "/v1/sql", "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1", "X-Request-Id", "s-long"), `"code":"cancelled"`)
	})
	runs := func() (n uint64) {
		n, err := e.ask("SELECT count() FROM system.processes WHERE startsWith(query_id, 'sql-s-long-')")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	eventually(t, 20*time.Second, func() error {
		if runs() == 0 {
			return errors.New("the statement does not run yet")
		}
		return nil
	})
	var last uint64
	began := time.Now()
	for i := range 2 { // ClickHouse says how far it is, and it is further then
		if i > 0 && time.Since(began) > query.DefaultSQLTime/2 {
			break // it ends by itself soon
		}
		eventually(t, 20*time.Second, func() error {
			var now struct {
				State    string
				Progress *struct {
					Rows, Bytes uint64
					TotalRows   uint64 `json:"total_rows"`
					Memory      int64  `json:"memory_bytes"`
				}
			}
			if err := json.Unmarshal(c.get("/v1/sql/s-long"), &now); err != nil || now.State != "running" {
				t.Fatalf("%+v, %v", now, err)
			}
			if now.Progress == nil || now.Progress.Rows <= last || now.Progress.TotalRows < now.Progress.Rows {
				return fmt.Errorf("progress is %+v, and %d rows were read before", now.Progress, last)
			}
			last = now.Progress.Rows
			return nil
		})
	}
	holds(t, c.send(200, "DELETE", "/v1/sql/s-long", ""), `"state":"cancelled"`)
	asked.Wait()
	eventually(t, 20*time.Second, func() error {
		if runs() > 0 {
			return errors.New("ClickHouse still works on the statement")
		}
		return nil
	})
}

func lettersOverHTTP(t *testing.T, e *env, c *caller) {
	t.Helper()
	for range 2 {
		if err := e.srv.NC().Publish(schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), 0), []byte("no json")); err != nil {
			t.Fatal(err)
		}
	}
	var dead struct {
		Dead []struct {
			ID  string
			Seq int
		}
	}
	eventually(t, time.Minute, func() error {
		if err := json.Unmarshal(c.get("/v1/dead?topic=app&limit=10"), &dead); err != nil || len(dead.Dead) < 2 {
			return fmt.Errorf("%d dead letters: %w", len(dead.Dead), err)
		}
		return nil
	})
	holds(t, c.get(fmt.Sprintf("/v1/dead/%d", dead.Dead[0].Seq)), `"reason":"not-json"`, `"payload"`)
	seq := dead.Dead[0].ID
	holds(t, c.get("/v1/dead?topic=app&limit=10&reason=not-json"), `"id":"`+seq+`"`)
	holds(t, c.get("/v1/dead?topic=app&limit=10&reason=late"), `"dead":[]`)
	holds(t, c.get("/v1/dead/reasons?topic=app"), `"reasons":[{"topic":"app","reason":"not-json","letters":2,"events":2}]`)
	holds(t, c.get("/v1/dead/reasons?topic=cpu"), `"reasons":[]`)
	holds(t, c.get("/v1/sql/schema"), `{"name":"app","columns":[{"name":"ts","type":"DateTime64(9`, `{"name":"app_recent",`)
	number, _, _ := strings.Cut(seq, "@")
	another := number + "@2026-01-01T00:00:00Z" // what had the number then
	holds(t, c.get("/v1/dead/"+seq), `"id":"`+seq+`"`, `"reason":"not-json"`)
	holds(t, c.send(404, "GET", "/v1/dead/"+another, ""), `"code":"no_such_dead_letter"`, "is gone")
	holds(t, c.send(404, "POST", "/v1/dead/drop?topic=app&seq="+another, ""), `"code":"no_such_dead_letter"`, "is gone")
	holds(t, c.send(404, "POST", "/v1/dead/retry?topic=app&dry_run=true&seq="+another, ""), `"code":"no_such_dead_letter"`, "is gone")
	holds(t, c.send(400, "POST", "/v1/dead/drop?topic=app&seq="+number, ""), `"code":"bad_parameter"`, "with its time")
	holds(t, c.send(200, "POST", "/v1/dead/retry?topic=app&dry_run=true&seq="+number, ""), `"kept":1`, seq)
	holds(t, c.send(200, "POST", "/v1/dead/retry?topic=app&reason=not-json&seq="+seq+"&dry_run=true", ""), `"kept":1`)
	holds(t, c.send(200, "POST", "/v1/dead/drop?topic=app&reason=not-json&seq="+seq+"&dry_run", "", "Wrong", "1"), `"dropped":1`)
	holds(t, c.job(c.send(202, "POST", "/v1/dead/retry?topic=app", "")), `"kept":2`)
	holds(t, c.job(c.send(202, "POST", "/v1/dead/drop?topic=app&seq="+seq, "")), `"dropped":1`)
}

func jobsOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	holds(t, c.job(c.send(202, "POST", "/v1/replays", `{"topic":"app","into":"copied","where":"level = 'error'","from":"2026-11-20","order":"position"}`)), `"events":15`)
	holds(t, c.send(200, "POST", "/v1/erasures?dry_run=true", `{"topic":"app","users":["u-0"]}`), `"rows":10`)
	job := c.send(202, "POST", "/v1/erasures", `{"topic":"app","users":["u-0"],"reason":"asked"}`)
	if bytes.Contains(job, []byte("u-0")) {
		t.Errorf("a job names the user, whom redacting the ledger would not forget: %s", job)
	}
	var done struct{ Erasure string }
	result := c.job(job)
	holds(t, result, `"certified":true`, `"rows":10`)
	_ = json.Unmarshal(result, &done)
	holds(t, c.get("/v1/topics/app/count?where="+url.QueryEscape("user_id = 'u-0'")), `"count":0`)
	holds(t, c.get("/v1/erasures?topic=app"), done.Erasure)
	holds(t, c.get("/v1/erasures/"+done.Erasure), `"certified":true`)
	holds(t, c.job(c.send(202, "POST", "/v1/erasures/"+done.Erasure+"/resume?purge=true", "")), `"certified":true`)
	var all struct{ Jobs []struct{ ID string } }
	if err := json.Unmarshal(c.get("/v1/jobs?kind=erasure&topic=app"), &all); err != nil || len(all.Jobs) != 2 {
		t.Fatalf("%d jobs, want 2: %v", len(all.Jobs), err)
	}
	holds(t, c.send(409, "DELETE", "/v1/jobs/"+all.Jobs[0].ID, ""), `"code":"ended"`)
}
