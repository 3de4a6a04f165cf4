package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A browser may go to the page before there are servers, on the listener of the API alone. Other pages may not have its
// files, and the API below it stays closed to them.
func TestPage(t *testing.T) {
	t.Parallel()
	addresses := listening(t)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for name, c := range map[string]struct {
		listener, path string
		site, mode     string
		dest           string
		status         int
		is             string
	}{
		"typed":                            {"http", "/console/", "none", "navigate", "document", 200, "<title>Almanac</title>"},
		"a link in another page":           {"http", "/console/", "cross-site", "navigate", "document", 200, "<title>Almanac</title>"},
		"the root leads to it":             {"http", "/", "none", "navigate", "document", 200, "<title>Almanac</title>"},
		"in a frame":                       {"http", "/console/", "cross-site", "navigate", "iframe", 403, "navigation"},
		"a script in another page":         {"http", "/console/app.js", "cross-site", "no-cors", "script", 403, "cross_origin"},
		"a program":                        {"http", "/console/", "", "", "", 200, "<title>Almanac</title>"},
		"the API, typed":                   {"http", "/v1/topics", "none", "navigate", "document", 403, "navigation"},
		"a path that begins as the page's": {"http", "/consoles", "none", "navigate", "document", 403, "navigation"},
		"the listener for Elasticsearch":   {"elastic", "/console/", "none", "navigate", "document", 403, "navigation"},
		"the listener for OpenTelemetry":   {"otlp", "/console/", "none", "navigate", "document", 403, "browser may not go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addresses[c.listener]+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for header, value := range map[string]string{"Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode, "Sec-Fetch-Dest": c.dest} {
				if value != "" {
					req.Header.Set(header, value)
				}
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || !strings.Contains(string(text), c.is) {
				t.Errorf("got %d %q (%v), want %d with %q", resp.StatusCode, text, err, c.status, c.is)
			}
			if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
				t.Errorf("its policy is %q", policy)
			}
		})
	}
}
