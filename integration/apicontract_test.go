package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/almanac-events/almanac/internal/gateway/api"
)

// contract is a transport that holds every request and response to the specification,
// and remembers which routes and parameters were used.
type contract struct {
	t      *testing.T
	doc    *openapi3.T
	router routers.Router

	mu   sync.Mutex
	used map[string]bool // "GET /path" and "GET /path in name"
}

func newContract(t *testing.T) *contract {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.Spec())
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	for _, text := range []string{"application/x-ndjson", "application/yaml", "application/octet-stream", "text/tab-separated-values", "text/event-stream", "text/csv"} {
		openapi3filter.RegisterBodyDecoder(text, openapi3filter.PlainBodyDecoder)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &contract{t: t, doc: doc, router: router, used: map[string]bool{}}
}

// shortTime is a JSON string that is a time with less than nine digits after the point. What the test
// stores does not have one.
var shortTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8})?(Z|[+-]\d\d:\d\d)"`)

// RoundTrip implements http.RoundTripper. A request that is wrong on purpose has the
// header Wrong, which is not sent.
func (c *contract) RoundTrip(r *http.Request) (*http.Response, error) {
	wrong := r.Header.Get("Wrong") != ""
	r.Header.Del("Wrong")
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	path := *r.URL
	path.Scheme, path.Host = "", ""
	asked := r.Clone(r.Context())
	asked.URL, asked.Body = &path, io.NopCloser(bytes.NewReader(sent))
	route, vars, err := c.router.FindRoute(asked)
	if err != nil {
		c.t.Errorf("%s %s is not in openapi.yaml: %v", r.Method, r.URL, err)
		return http.DefaultTransport.RoundTrip(r)
	}
	in := &openapi3filter.RequestValidationInput{Request: asked, PathParams: vars, Route: route, Options: &openapi3filter.Options{
		IncludeResponseStatus: true, ExcludeRequestBody: !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || strings.HasSuffix(path.Path, "/events"),
	}}
	if err := openapi3filter.ValidateRequest(r.Context(), in); (err != nil) && !wrong {
		c.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	c.use(r.Method, route, r.URL.Query(), r.Header)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, err
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(got))
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(got)), Options: in.Options}
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		c.t.Errorf("%s %s: the answer %d: %v\n%.500s", r.Method, r.URL, resp.StatusCode, err, got)
	}
	if short := shortTime.Find(got); short != nil {
		c.t.Errorf("%s %s: the time %s does not have nine digits", r.Method, r.URL, short)
	}
	return resp, nil
}

func (c *contract) use(method string, route *routers.Route, q url.Values, h http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := method + " " + route.Path
	c.used[name] = true
	for key := range q {
		c.used[name+" query "+key] = true
	}
	for key := range h {
		c.used[name+" header "+key] = true
	}
}

// unused fails for routes and parameters that no request of the test had.
func (c *contract) unused() {
	c.t.Helper()
	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			if !c.used[name] {
				c.t.Errorf("no request of the test is %s", name)
				continue
			}
			for _, p := range op.Parameters {
				in, key := p.Value.In, p.Value.Name
				if in == "header" {
					key = http.CanonicalHeaderKey(key)
				}
				if in != "path" && !c.used[fmt.Sprintf("%s %s %s", name, in, key)] {
					c.t.Errorf("no request %s of the test has the %s parameter %s", name, in, key)
				}
			}
		}
	}
}
