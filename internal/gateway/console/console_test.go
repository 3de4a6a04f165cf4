package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func ask(t *testing.T, h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var bundle = fstest.MapFS{
	"dist/placeholder.html": {Data: []byte("how to build")},
	"dist/index.html":       {Data: []byte("<!doctype html><html>the page")},
	"dist/licences.txt":     {Data: []byte("MIT")},
	"dist/app-63A35Q2K.js":  {Data: []byte(strings.Repeat("console.log(1);", 100))},
}

func TestServes(t *testing.T) {
	t.Parallel()
	h := newFiles(bundle)
	for name, c := range map[string]struct {
		method, path string
		status       int
		text, cache  string
		contentType  string
	}{
		"the page":                 {http.MethodGet, "/console/", 200, "the page", "no-cache", "text/html; charset=utf-8"},
		"the page, by its name":    {http.MethodGet, "/console/index.html", 200, "the page", "no-cache", "text/html; charset=utf-8"},
		"a script":                 {http.MethodGet, "/console/app-63A35Q2K.js", 200, "console.log", "public, max-age=31536000, immutable", "text/javascript; charset=utf-8"},
		"the headers of a script":  {http.MethodHead, "/console/app-63A35Q2K.js", 200, "", "public, max-age=31536000, immutable", "text/javascript; charset=utf-8"},
		"a script of another time": {http.MethodGet, "/console/app-YYVMSUPS.js", 404, "a newer one is at /console/", "", "text/plain; charset=utf-8"},
		"a file without a hash":    {http.MethodGet, "/console/licences.txt", 200, "MIT", "no-cache", "text/plain; charset=utf-8"},
		"a folder":                 {http.MethodGet, "/console/dist/index.html", 404, "no such file", "", "text/plain; charset=utf-8"},
		"a write":                  {http.MethodPost, "/console/", 405, "only read", "", "text/plain; charset=utf-8"},
		"the root":                 {http.MethodGet, "/", 307, "", "", ""},
		"without a slash":          {http.MethodGet, "/console", 307, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(t, h, c.method, c.path)
			if body := got.Body.String(); got.Code != c.status || !strings.Contains(body, c.text) || c.text == "" && body != "" {
				t.Errorf("got %d %q, want %d %q", got.Code, body, c.status, c.text)
			}
			if cache, kind := got.Header().Get("Cache-Control"), got.Header().Get("Content-Type"); cache != c.cache || kind != c.contentType {
				t.Errorf("got Cache-Control %q and Content-Type %q, want %q and %q", cache, kind, c.cache, c.contentType)
			}
			if c.status == 200 && got.Header().Get("Content-Security-Policy") != policy {
				t.Errorf("policy %q", got.Header().Get("Content-Security-Policy"))
			}
			if c.status == 307 && got.Header().Get("Location") != "./console/" {
				t.Errorf("leads to %q, which is not relative", got.Header().Get("Location"))
			}
		})
	}
}

// A compressed answer is the same text, and one that is known is not sent again.
func TestCompressedAndKnown(t *testing.T) {
	t.Parallel()
	h := newFiles(bundle)
	plain := ask(t, h, http.MethodGet, "/console/app-63A35Q2K.js").Body.String()
	got := ask(t, h, http.MethodGet, "/console/app-63A35Q2K.js", "Accept-Encoding", "gzip, br")
	r, err := gzip.NewReader(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil || string(all) != plain {
		t.Errorf("compressed it is %q (%v)", all, err)
	}
	for _, encoding := range []string{"", "gzip"} {
		tag := ask(t, h, http.MethodGet, "/console/", "Accept-Encoding", encoding).Header().Get("ETag")
		if again := ask(t, h, http.MethodGet, "/console/", "Accept-Encoding", encoding, "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%q again: %d", tag, again.Code)
		}
	}
}

func TestTakesGzip(t *testing.T) {
	t.Parallel()
	for accepted, want := range map[string]bool{
		"gzip": true, "GZIP;q=0.5": true, "br, gzip": true, "deflate, gzip;q=1.0, *;q=0": true, "br;q=0,gzip": true,
		"": false, "identity": false, "gzip;q=0": false, "br, gzip; q=0.000": false, "xgzip": false, "gzip;q=x": false,
	} {
		got := ask(t, newFiles(bundle), http.MethodGet, "/console/app-63A35Q2K.js", "Accept-Encoding", accepted).Header().Get("Content-Encoding") == "gzip"
		if got != want {
			t.Errorf("%q: compressed %t, want %t", accepted, got, want)
		}
	}
}

// A binary without the bundle says how to build it, and the page that says so keeps to the policy.
func TestPlaceholder(t *testing.T) {
	t.Parallel()
	f := newFiles(built)
	page := string(f.all[placeholder].text)
	if !strings.Contains(page, "make console build") || regexp.MustCompile(`<script|style=|\son\w+=`).MatchString(page) {
		t.Errorf("the placeholder is %s", page)
	}
	if got := ask(t, newFiles(fstest.MapFS{"dist/placeholder.html": bundle["dist/placeholder.html"]}), http.MethodGet, "/console/").Body.String(); got != "how to build" {
		t.Errorf("without a bundle: %q", got)
	}
}

// What a visit loads before anything is asked for, compressed, and what all of it is.
const (
	maxFirst = 45 << 10
	maxAll   = 200 << 10
)

func TestBundle(t *testing.T) {
	t.Parallel()
	if !Built() {
		t.Skip("the page is not built: make console")
	}
	f := newFiles(built)
	page := f.all["index.html"].text
	first, all := len(f.all["index.html"].compressed()), 0
	for name, one := range f.all {
		if name != placeholder {
			all += len(one.compressed())
		}
	}
	for _, at := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllSubmatch(page, -1) {
		one := f.all[string(at[1])]
		if one == nil {
			t.Fatalf("index.html names %s, which is not there", at[1])
		}
		first += len(one.compressed())
		// What a script cannot begin without is named there too, and so counts.
		for _, needs := range regexp.MustCompile(`(?:from|import)"\./([^"]+)"`).FindAllSubmatch(one.text, -1) {
			if !bytes.Contains(page, needs[1]) {
				t.Errorf("%s needs %s, which index.html does not name", at[1], needs[1])
			}
		}
	}
	if first > maxFirst || all > maxAll {
		t.Errorf("%d bytes for a first visit and %d in all; at most %d and %d", first, all, maxFirst, maxAll)
	}
	if n := bytes.Count(page, []byte("modulepreload")); n != 1 {
		t.Errorf("index.html names %d parts to load at once, want one: many small ones compress worse", n)
	}
	if regexp.MustCompile(`<script>|<style|style=|\son\w+=|https?:`).Match(page) {
		t.Errorf("index.html has what the policy refuses:\n%s", page)
	}
	for name, one := range f.all {
		if strings.HasSuffix(name, ".js") && bytes.Contains(one.text, []byte("dangerouslySetInnerHTML:")) {
			t.Errorf("%s makes markup of text", name)
		}
	}
}

// A page that another site led to is marked, and caches keep both apart.
func TestLinked(t *testing.T) {
	t.Parallel()
	h := newFiles(bundle)
	tags := map[bool]string{}
	for site, marked := range map[string]bool{"": false, "none": false, "same-origin": false, "same-site": true, "cross-site": true} {
		for _, path := range []string{Path, Path + "index.html"} {
			got := ask(t, h, http.MethodGet, path, "Sec-Fetch-Site", site)
			if is := strings.Contains(got.Body.String(), "<html "+linkedMark); is != marked {
				t.Errorf("%s from %q: marked %t, want %t: %s", path, site, is, marked, got.Body)
			}
			if vary := strings.Join(got.Header().Values("Vary"), ", "); !strings.Contains(vary, "Sec-Fetch-Site") || !strings.Contains(vary, "Accept-Encoding") {
				t.Errorf("%s varies by %q", path, vary)
			}
			tags[marked] = got.Header().Get("ETag")
		}
	}
	if tags[true] == tags[false] {
		t.Errorf("both have the tag %s", tags[true])
	}
	if got := ask(t, h, http.MethodGet, Path, "Sec-Fetch-Site", "cross-site", "If-None-Match", tags[false]); got.Code != http.StatusOK {
		t.Errorf("the page without the mark is taken from a cache: %d", got.Code)
	}
	if !Built() {
		return
	}
	if got := ask(t, New(), http.MethodGet, Path, "Sec-Fetch-Site", "cross-site"); !strings.Contains(got.Body.String(), "<html "+linkedMark) {
		t.Error("the page that this binary has is not marked")
	}
}
