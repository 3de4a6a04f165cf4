package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/gateway"
)

// searchesOverHTTP saves searches, and removes them.
func searchesOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	holds(t, c.get("/v1/searches"), `"searches":[]`)
	const search = `{"topics":["app"],"from":"-1d","where":"level = 'error'","shown":{"cols":"service"}}`
	holds(t, c.send(200, "PUT", "/v1/searches/errors%20a%20day", search), `"name":"errors a day"`, `"saved_at":"20`)
	holds(t, c.send(200, "PUT", "/v1/searches/a", strings.Replace(search, `{`, `{"saved_by":"another",`, 1)), `"name":"a"`, `"shown":{"cols":"service"}`)
	list := string(c.get("/v1/searches"))
	holds(t, []byte(list), `"name":"errors a day"`, `"where":"level = 'error'"`)
	if strings.Contains(list, "another") || strings.Index(list, `"a"`) > strings.Index(list, "errors a day") {
		t.Errorf("who saved a search is what the body says, or the order is not by name: %s", list)
	}
	for _, refused := range []struct {
		status     int
		body, want string
	}{
		{400, strings.Replace(search, "level", "levl", 1), "levl"},
		{400, strings.Replace(search, `["app"]`, `[]`, 1), "names no topic"},
		{413, `{"topics":["` + strings.Repeat("app", 3000) + `"]}`, "8192"},
		{400, search[:1] + `"name":"b",` + search[1:], "the body's"},
		{404, strings.Replace(search, `"app"`, `"nope"`, 1), "nope"},
	} {
		holds(t, c.send(refused.status, "PUT", "/v1/searches/other", refused.body), refused.want)
	}
	// Charts are of another kind, and may name no topic.
	const charts = `{"kind":"charts","topics":[],"shown":{"c":"[]"}}`
	holds(t, c.send(200, "PUT", "/v1/searches/charts", charts), `"kind":"charts"`, `"topics":[]`)
	holds(t, c.send(409, "PUT", "/v1/searches/charts", search), "search_exists")
	holds(t, c.send(409, "PUT", "/v1/searches/a", charts), "search_exists")
	holds(t, c.send(400, "PUT", "/v1/searches/other", strings.Replace(charts, `{`, `{"where":"level = 'error'",`, 1)), "where is of a search")
	c.send(204, "DELETE", "/v1/searches/charts", "")
	c.send(204, "DELETE", "/v1/searches/a", "")
	c.send(204, "DELETE", "/v1/searches/errors%20a%20day", "")
	holds(t, c.send(404, "DELETE", "/v1/searches/a", ""), "unknown_search")
	holds(t, c.get("/v1/searches"), `"searches":[]`)
}

// A search is seen, replaced and removed by who may read all of its topics.
func TestRightsOfSearches(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"), newTopic("other"))
	k, all, _ := holders(t)
	base, _ := e.gateway(func(c *gateway.Config) { c.Tokens = k })
	secrets := map[string]string{}
	for _, c := range all {
		secrets[c.name] = c.secret
	}
	const own, both = `{"topics":["app"]}`, `{"topics":["app","other"]}`
	for _, step := range []struct {
		who, method, path, body string
		code                    int
		has, hasNot             string
	}{
		{"no token", http.MethodPut, "/own", own, 401, "needs a token with the role read", ""},
		{"write", http.MethodPut, "/own", own, 403, "does not have the role read", ""},
		{"read", http.MethodPut, "/both", both, 403, `topic \"other\"`, ""},
		{"read", http.MethodPut, "/own", own, 200, `"saved_by":"read"`, ""},
		{"admin", http.MethodPut, "/both", both, 200, `"saved_by":"admin"`, ""},
		{"read", http.MethodGet, "", "", 200, `"own"`, "both"},
		{"no token", http.MethodGet, "", "", 200, `"own"`, ""}, // reads are free on loopback
		{"read", http.MethodPut, "/both", own, 409, "search_exists", ""},
		{"read", http.MethodDelete, "/both", "", 404, "unknown_search", ""},
		{"read", http.MethodPut, "/any", `{"kind":"charts","topics":[]}`, 403, "", ""}, // what names no topic may read any
		{"admin", http.MethodPut, "/any", `{"kind":"charts","topics":[]}`, 200, `"saved_by":"admin"`, ""},
		{"admin", http.MethodPut, "/any", `{"kind":"maps","topics":[]}`, 400, "its kind is", ""},
		{"read", http.MethodGet, "", "", 200, `"own"`, "any"},
		{"admin", http.MethodDelete, "/any", "", 204, "", ""},
		{"operate", http.MethodPut, "/own", `{"topics":["app"],"from":"-1h"}`, 200, `"saved_by":"operate"`, ""},
		{"write", http.MethodDelete, "/own", "", 403, "", ""},
		{"read", http.MethodDelete, "/own", "", 204, "", ""},
		{"admin", http.MethodGet, "", "", 200, `"both"`, "own"},
	} {
		code, text := e.sendAs(step.method, base+"/v1/searches"+step.path, secrets[step.who], "application/json", step.body)
		if code != step.code || !strings.Contains(text, step.has) || step.hasNot != "" && strings.Contains(text, step.hasNot) {
			t.Errorf("%s by %s: %d %s; expected %d with %q", step.method+" "+step.path, step.who, code, text, step.code, step.has)
		}
	}
}
