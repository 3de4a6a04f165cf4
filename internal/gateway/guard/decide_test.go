package guard

import (
	"net/http"
	"testing"
)

// What passes, and with what the rest is refused.
func TestDecide(t *testing.T) {
	t.Parallel()
	const host = "127.0.0.1:7070"
	for name, c := range map[string]struct {
		ask    Ask
		status int // 0: it passes
	}{
		"a program":                                   {Ask{}, 0},
		"a program that writes":                       {Ask{Method: http.MethodPost}, 0},
		"node's fetch":                                {Ask{Mode: "cors"}, 0},
		"a page of this origin":                       {Ask{Site: "same-origin", Mode: "cors", Referer: "http://" + host + "/"}, 0},
		"a page of this origin that writes":           {Ask{Method: http.MethodPost, Site: "same-origin", Mode: "cors", Origin: "http://" + host}, 0},
		"a page of this origin behind a proxy":        {Ask{Site: "same-origin", Mode: "cors", Origin: "https://logs.example.com"}, 0},
		"an extension":                                {Ask{Site: "none", Mode: "cors"}, 0},
		"an old browser, this origin":                 {Ask{Method: http.MethodPost, Origin: "http://" + host}, 0},
		"an old browser, a read of this origin":       {Ask{Referer: "http://" + host + "/page?a=b"}, 0},
		"a fetch of another site":                     {Ask{Site: "cross-site", Mode: "cors"}, 403},
		"an image of another site":                    {Ask{Site: "cross-site", Mode: "no-cors"}, 403},
		"an image of another port":                    {Ask{Site: "same-site", Mode: "no-cors"}, 403},
		"a site that is not known":                    {Ask{Site: "same-origin, cross-site"}, 403},
		"a preflight":                                 {Ask{Method: http.MethodOptions, Site: "cross-site", Mode: "cors"}, 403},
		"a web socket":                                {Ask{Site: "cross-site", Mode: "websocket"}, 403},
		"a web socket of an old browser":              {Ask{Origin: "http://evil.example"}, 403},
		"a link of another site":                      {Ask{Site: "cross-site", Mode: "navigate"}, 403},
		"a link of this origin":                       {Ask{Site: "same-origin", Mode: "navigate"}, 403},
		"a link in another program":                   {Ask{Site: "none", Mode: "navigate"}, 403},
		"a frame":                                     {Ask{Site: "cross-site", Mode: "navigate"}, 403},
		"a form":                                      {Ask{Method: http.MethodPost, Site: "cross-site", Mode: "navigate", Origin: "http://evil.example"}, 403},
		"a form of this origin":                       {Ask{Method: http.MethodPost, Site: "same-origin", Mode: "navigate"}, 403},
		"no origin":                                   {Ask{Method: http.MethodPost, Origin: "null"}, 403},
		"no origin, no host":                          {Ask{Method: http.MethodPost, Origin: "null", Host: "-"}, 403},
		"an old browser, another site":                {Ask{Method: http.MethodPost, Origin: "http://evil.example"}, 403},
		"an old browser, another port":                {Ask{Method: http.MethodPost, Origin: "http://127.0.0.1:8000"}, 403},
		"an old browser, the port left out":           {Ask{Method: http.MethodPost, Origin: "http://127.0.0.1"}, 403},
		"an old browser, the same name further down":  {Ask{Method: http.MethodPost, Origin: "http://" + host + ".evil.example"}, 403},
		"an old browser, the host as an account":      {Ask{Method: http.MethodPost, Origin: "http://" + host + "@evil.example"}, 403},
		"an old browser, a read of another site":      {Ask{Referer: "http://evil.example/page"}, 403},
		"an old browser, an origin that is not one":   {Ask{Origin: "http://%zz"}, 403},
		"an old browser, a referer that is not one":   {Ask{Referer: "://"}, 403},
		"an old browser, a form with a referer alone": {Ask{Method: http.MethodPost, Referer: "http://evil.example/page"}, 403},
		"health, a link":                              {Ask{Path: "/healthz", Site: "cross-site", Mode: "navigate"}, 0},
		"readiness, an image":                         {Ask{Path: "/readyz", Site: "cross-site", Mode: "no-cors"}, 0},
		"the version, by HEAD":                        {Ask{Method: http.MethodHead, Path: "/version", Site: "cross-site"}, 0},
		"the specification":                           {Ask{Path: "/openapi.yaml", Site: "none", Mode: "navigate"}, 0},
		"health, a form":                              {Ask{Method: http.MethodPost, Path: "/healthz", Site: "cross-site", Mode: "navigate"}, 403},
		"a path below health":                         {Ask{Path: "/healthz/x", Site: "cross-site"}, 403},
		"the page, a link of another site":            {Ask{Page: true, Site: "cross-site", Mode: "navigate", Dest: "document"}, 0},
		"the page, typed":                             {Ask{Page: true, Site: "none", Mode: "navigate", Dest: "document"}, 0},
		"the page, its script":                        {Ask{Page: true, Site: "same-origin", Mode: "no-cors", Dest: "script"}, 0},
		"the page, its script in another page":        {Ask{Page: true, Site: "cross-site", Mode: "no-cors", Dest: "script"}, 403},
		"the page, in a frame":                        {Ask{Page: true, Site: "cross-site", Mode: "navigate", Dest: "iframe"}, 403},
		"the page, an object":                         {Ask{Page: true, Site: "cross-site", Mode: "navigate", Dest: "object"}, 403},
		"the page, a form":                            {Ask{Page: true, Method: http.MethodPost, Site: "cross-site", Mode: "navigate", Dest: "document"}, 403},
		"the page of another host":                    {Ask{Page: true, Host: "evil.example", Site: "none", Mode: "navigate", Dest: "document"}, 421},
		"health of another host":                      {Ask{Path: "/healthz", Host: "evil.example"}, 421},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := c.ask
			ask.Loopback = true
			switch ask.Host {
			case "":
				ask.Host = host
			case "-":
				ask.Host = ""
			}
			if ask.Method == "" {
				ask.Method = http.MethodGet
			}
			if ask.Path == "" {
				ask.Path = "/v1/topics"
			}
			got := Decide(&ask)
			if (got == nil) != (c.status == 0) || got != nil && (got.Status != c.status || got.Message == "" || got.Hint == "") {
				t.Errorf("refused with %+v, want %d", got, c.status)
			}
		})
	}
}

// Names that a request gives a listener on loopback.
func TestHosts(t *testing.T) {
	t.Parallel()
	for host, own := range map[string]bool{
		"127.0.0.1:7070": true, "localhost:7070": true, "[::1]:7070": true, "127.1.2.3": true, "": true, "localhost": true, "[::ffff:127.0.0.1]:7070": true,
		"127.0.0.1.nip.io:7070": false, "localhost.:7070": false, "127.1:7070": false, "2130706433:7070": false, "0x7f000001:7070": false, "0177.0.0.1": false, "0.0.0.0:7070": false,
		"[::]:7070": false, "169.254.169.254": false, "[fe80::1%25lo]:7070": false, "evil.example": false, "localhost.evil.example": false, "evil.example@127.0.0.1": false,
		"127.0.0.1:7070@evil.example": false, "LOCALHOST.EVIL.EXAMPLE": false, "192.168.1.5:7070": false, "127.0.0.1 evil.example": false, "[]": false, "[": false, ":7070": true,
	} {
		got := Decide(&Ask{Method: http.MethodGet, Path: "/v1/topics", Host: host, Loopback: true})
		if (got == nil) != own || got != nil && got.Status != http.StatusMisdirectedRequest {
			t.Errorf("%q: %v", host, got)
		}
		if got := Decide(&Ask{Method: http.MethodGet, Path: "/v1/topics", Host: host}); got != nil {
			t.Errorf("%q of a listener elsewhere: %v", host, got)
		}
	}
}
