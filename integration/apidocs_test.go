package integration

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// documentsOverHTTP stores, loads, lists, locks and removes documents.
func documentsOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	const base = "/v1/documents/customers"
	holds(t, c.send(404, "GET", "/v1/documents/none/a", ""), "unknown_topic")
	holds(t, c.send(400, "GET", "/v1/documents/app/a", ""), "wrong_kind", "kind log")
	holds(t, c.send(201, "PUT", base+"/a?path=se/uppsala", `{"status":"new", "n":1}`, "If-None-Match", "*"), `"version":1`, `"path":"se/uppsala"`, `{"status":"new","n":1}`)
	holds(t, c.send(409, "PUT", base+"/a", `{}`, "If-None-Match", "*"), `"code":"exists"`)
	holds(t, c.send(200, "PUT", base+"/a", `{"status":"old"}`, "If-Match", `"1"`), `"version":2`)
	holds(t, c.send(412, "PUT", base+"/a", `{}`, "If-Match", `"1"`), `"code":"version"`, `"have":2`)
	holds(t, c.send(404, "PUT", base+"/none", `{}`, "If-Match", "*"), `"code":"not_found"`)
	holds(t, c.send(400, "PUT", base+"/a", `{}`, "If-Match", "x"), "bad_header")
	// A guard that is empty or 0 is not left out: a worker's variable was wrong.
	for _, guard := range []string{"If-Match", "If-None-Match"} {
		holds(t, c.send(400, "PUT", base+"/a", `{}`, guard, ""), "bad_header", "is empty")
	}
	for _, query := range []string{"?lock=", "?lock=0"} {
		holds(t, c.send(400, "PUT", base+"/a"+query, `{}`, "Wrong", "yes"), "bad_parameter")
	}
	for _, guard := range []string{`"lock":0`, `"lock":null`, `"if_version":0`} {
		holds(t, c.send(400, "POST", base+"/batch", `{"changes":[{"op":"update","id":"a","body":{},`+guard+`}]}`, "Wrong", "yes"), "bad_json", "leave it out")
	}
	holds(t, c.send(400, "PUT", base+"/a", `{"n":`, "Wrong", "1"), "bad_request", "not JSON")
	holds(t, c.send(413, "PUT", base+"/a", `{"n":"`+strings.Repeat("x", 4*schemas.MaxDocumentBytes)+`"}`), "too_large")
	holds(t, c.get(base+"/a?path=se/uppsala"), `"version":2`, `"status":"old"`)
	holds(t, c.send(404, "GET", base+"/a?path=no", ""), "not_found")
	c.send(304, "GET", base+"/a", "", "If-None-Match", `"2"`)
	holds(t, c.send(201, "POST", base+"?path=se/lund", `{"status":"new"}`), `"version":1`, `"by":"http"`)
	holds(t, c.send(423, "POST", base+"?lock=1&unlock=true", `{"status":"new"}`), "lost")
	pathsOverHTTP(t, c, base)

	batchOverHTTP(t, c, base)
	locksOverHTTP(t, c, base)

	for i := range 5 {
		c.send(201, "PUT", fmt.Sprintf("%s/w%d?path=w", base, i), fmt.Sprintf(`{"status":%q}`, []string{"new", "old"}[i%2]))
	}
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	page := c.get(base + "?path=w&limit=2&created_from=-1h&created_to=" + later + "&where=" + url.QueryEscape(`status = 'new'`))
	holds(t, page, `"id":"w4"`, `"id":"w2"`)
	rest := c.get(base + "?path=w&limit=2&created_to=" + later + "&where=" + url.QueryEscape(`status = 'new'`) + "&cursor=" + cursorOf(t, page))
	holds(t, rest, `"id":"w0"`)
	if strings.Contains(string(rest), "cursor") {
		t.Errorf("there is no page after the last: %s", rest)
	}
	holds(t, c.send(400, "GET", base+"?path=w&where="+url.QueryEscape(`status = 'old'`)+"&cursor="+cursorOf(t, page), ""), "another list")
	holds(t, c.send(400, "GET", base+"?where="+url.QueryEscape(`statuss = 'new'`), ""), "bad_where", "status")
	holds(t, c.get(base+"?changed_from=-1h&changed_to="+later+"&limit=1"), `"documents"`, `"cursor"`)
	holds(t, c.send(200, "POST", base+"/load", `{"ids":["w1","none","w0"]}`), `"documents":[{"id":"w1"`, `,null,{"id":"w0"`)
	holds(t, c.get(base+"/a/history"), `"op":"stored"`, `"op":"updated"`)
	holds(t, c.send(412, "DELETE", base+"/w0", "", "If-Match", `"7"`), `"have":1`)
	c.send(204, "DELETE", base+"/w0", "", "If-Match", `"1"`)
	holds(t, c.send(404, "DELETE", base+"/w0", ""), "not_found")
}

// pathsOverHTTP writes through other paths, with times of creation, and lists what is below one.
func pathsOverHTTP(t *testing.T, c *caller, base string) {
	t.Helper()
	for _, method := range []string{"PUT", "DELETE"} {
		holds(t, c.send(409, method, base+"/a?path=se/lund", `{}`), `"code":"other_path"`, `"have_path":"se/uppsala"`, `se/lund`)
	}
	holds(t, c.send(409, "POST", base+"/batch", `{"changes":[{"op":"put","id":"a","path":"se/lund","body":{}}]}`), `"index":0,"id":"a"`, `"have_path":"se/uppsala"`)
	holds(t, c.send(201, "PUT", base+"/old?path=far/away&created=2019-05-06T07:08:09.123456789Z", `{}`), `"created":"2019-05-06T07:08:09.123456789Z"`)
	holds(t, c.send(200, "PUT", base+"/old?created=2020-01-01", `{}`), `"created":"2019-05-06T07:08:09.123456789Z"`, `"version":2`)
	holds(t, c.send(201, "POST", base+"?path=far&created=2019-01-01", `{}`), `"created":"2019-01-01T00:00:00.000000000Z"`)
	holds(t, c.send(400, "POST", base+"?created=2200-01-01", `{}`), "after the time of the server")
	holds(t, c.send(200, "POST", base+"/batch", `{"changes":[{"op":"create","id":"older","path":"far","created":"2018-01-01T00:00:00Z","body":{}}]}`), `"created":"2018-01-01T00:00:00.000000000Z"`)
	below := c.get(base + "?path=far&below=true&no_bodies=true")
	holds(t, below, `"id":"old"`, `"path":"far"`)
	if strings.Contains(string(below), "body") {
		t.Errorf("a list without bodies: %s", below)
	}
	holds(t, c.get(base+"?path=far/away&order=changed"), `"documents":[{"id":"old"`)
}

// batchOverHTTP changes several documents at once, all or none.
func batchOverHTTP(t *testing.T, c *caller, base string) {
	t.Helper()
	holds(t, c.send(200, "POST", base+"/batch", `{"changes":[{"op":"create","id":"b1","path":"b","body":{"n":1}},{"op":"put","id":"b2","body":{"n":2}},{"op":"create","body":{}}]}`), `"id":"b1"`, `"id":"b2"`)
	refused := c.send(412, "POST", base+"/batch", `{"changes":[{"op":"update","id":"b1","if_version":1,"body":{"n":3}},{"op":"update","id":"b2","if_version":9,"body":{"n":4}},{"op":"create","id":"b1x","body":{}},{"op":"create","id":"a","body":{}}]}`)
	holds(t, refused, `"code":"version"`, `nothing of the batch was written`, `"index":1,"id":"b2"`, `"have":1`, `"index":3,"id":"a"`, `"code":"exists"`)
	holds(t, c.get(base+"/b1"), `"version":1`)
	holds(t, c.send(404, "GET", base+"/b1x", ""), "not_found")
	holds(t, c.send(400, "POST", base+"/batch", `{"changes":[{"op":"put","id":"b1","body":{}},{"op":"remove","id":"b1"}]}`), "each document once")
	holds(t, c.send(400, "POST", base+"/batch", `{"changes":[{"op":"move","id":"b1"}]}`, "Wrong", "1"), "create, put, update or remove")
	holds(t, c.send(200, "POST", base+"/batch", `{"changes":[{"op":"update","id":"b1","if_version":1,"body":{"n":3}},{"op":"remove","id":"b2"}]}`), `"version":2`)
}

// locksOverHTTP locks an id: another locker is told who holds it, and a write under a lock that was lost is refused.
func locksOverHTTP(t *testing.T, c *caller, base string) {
	t.Helper()
	token := func(answer []byte) string {
		t.Helper()
		var l struct{ Token uint64 }
		if err := json.Unmarshal(answer, &l); err != nil || l.Token == 0 {
			t.Fatalf("no token in %s: %v", answer, err)
		}
		return fmt.Sprint(l.Token)
	}
	holds(t, c.send(404, "GET", base+"/a/lock", ""), "not_locked")
	first := token(c.send(200, "POST", base+"/a/lock", `{"for":"10m","by":"one"}`))
	holds(t, c.get(base+"/a/lock"), `"by":"one"`, `"until"`)
	holds(t, c.send(423, "POST", base+"/a/lock", `{"by":"two"}`), `"code":"locked"`, `"by":"one"`, `"token":`+first)
	holds(t, c.send(200, "POST", base+"/a/lock", `{"token":`+first+`,"for":"20m"}`), `"token":`+first)
	holds(t, c.send(400, "POST", base+"/a/lock", `{"for":"2h"}`), "1s to 1h")
	holds(t, c.send(200, "PUT", base+"/a?lock="+first, `{"under":1}`), `"under":1`)
	holds(t, c.send(400, "DELETE", base+"/a/lock", ""), "token")
	c.send(204, "DELETE", base+"/a/lock?token="+first, "")
	second := token(c.send(200, "POST", base+"/a/lock", `{"by":"two"}`))
	holds(t, c.send(423, "PUT", base+"/a?lock="+first, `{"late":1}`), `"by":"two"`, "was lost")
	holds(t, c.send(423, "DELETE", base+"/a?lock="+first+"&unlock=true", ""), "was lost")
	holds(t, c.send(200, "PUT", base+"/a?unlock=true&lock="+second, `{"under":2}`), `"under":2`)
	c.send(200, "POST", base+"/a/lock", `{}`)
	c.send(204, "DELETE", base+"/a/lock?force=true", "")
}
