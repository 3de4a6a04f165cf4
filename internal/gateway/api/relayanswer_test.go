package api

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A statement may set any header of its answer. None makes a browser take it for a page.
func TestRelayedAnswer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"application/json; charset=UTF-8":          "application/json; charset=UTF-8",
		"application/x-ndjson; charset=UTF-8":      "application/x-ndjson; charset=UTF-8",
		"text/csv; charset=UTF-8; header=present":  "text/csv; charset=UTF-8; header=present",
		"text/tab-separated-values; charset=UTF-8": "text/tab-separated-values; charset=UTF-8",
		"text/plain; charset=utf-7":                "text/plain",
		"text/plain; header=\"<script>\"":          "text/plain",
		"application/octet-stream":                 "application/octet-stream",
		"text/html":                                "application/octet-stream",
		"text/html; charset=UTF-8":                 "application/octet-stream",
		"TEXT/HTML":                                "application/octet-stream",
		"text/plain, text/html":                    "application/octet-stream",
		"application/xml; charset=UTF-8":           "application/octet-stream",
		"application/xhtml+xml":                    "application/octet-stream",
		"image/svg+xml":                            "application/octet-stream",
		"text/javascript":                          "application/octet-stream",
		"text/xml":                                 "application/octet-stream",
		"multipart/x-mixed-replace; boundary=x":    "application/octet-stream",
		"message/rfc822":                           "application/octet-stream",
		"application/pdf":                          "application/octet-stream",
		"text/css":                                 "application/octet-stream",
		"":                                         "application/octet-stream",
		";":                                        "application/octet-stream",
		"application/vnd.apache.parquet":           "application/vnd.apache.parquet",
		"application/json; charset=UTF-8; header=\"a\r\nX-Evil: b\"": "application/octet-stream",
	} {
		if got := relayedType(text); got != want {
			t.Errorf("%q is passed on as %q, want %q", text, got, want)
		}
	}
	got := relayedAnswer(http.Header{
		"Content-Type": {"text/html"}, "Content-Encoding": {"gzip"}, "X-Clickhouse-Query-Id": {"a"}, "X-Clickhouse-Anything": {"b"}, "Set-Cookie": {"a=b"}, "Location": {"http://evil.example"},
		"Access-Control-Allow-Origin": {"*"}, "Content-Security-Policy": {"default-src *"}, "Refresh": {"0; url=http://evil.example"}, "Clear-Site-Data": {"*"}, "Service-Worker-Allowed": {"/"},
		"Content-Disposition": {"inline"}, "Link": {"<http://evil.example>; rel=preload"}, "Www-Authenticate": {"Basic"}, "X-Content-Type-Options": {""}, "Alt-Svc": {`h2="evil.example:1"`},
	})
	want := http.Header{"Content-Type": {"application/octet-stream"}, "Content-Encoding": {"gzip"}, "X-Clickhouse-Query-Id": {"a"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
