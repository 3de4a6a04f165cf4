package guard

import (
	"net/http"
	"testing"
)

// Where no client needs a token, a request names an address, or a name that is not another's for it.
func TestHostsWithoutTokens(t *testing.T) {
	t.Parallel()
	names := []string{"logs.example.com"}
	for host, own := range map[string]bool{
		"192.168.1.5:7070": true, "192.168.1.5": true, "[2001:db8::1]:7070": true, "[2001:db8::1]": true, "localhost:7070": true, "": true, "almanac:7070": true, "almanac.default.svc:7070": true,
		"almanac.default.svc.cluster.local": true, "ALMANAC.Internal": true, "box.home.arpa:7070": true, "logs.example.com:7070": true, "LOGS.example.com.": true, "127.0.0.1:7070": true,
		"evil.example": false, "rebound.evil.example:7070": false, "192.168.1.5.nip.io:7070": false, "logs.example.com.evil.example": false, "x.logs.example.com": false, "evil.example.": false,
		"192.168.1.5@evil.example": false, "local.evil.example": false, "evillocal.example": false, "192.168.1": false,
	} {
		got := Decide(&Ask{Method: http.MethodGet, Path: "/v1/topics", Host: host, Unasked: true, Hosts: names})
		if (got == nil) != own || got != nil && got.Status != http.StatusMisdirectedRequest {
			t.Errorf("%q: %v", host, got)
		}
	}
	for _, path := range []string{"/", "/healthz", "/clickhouse/"} { // a page of that name must not load either
		if got := Decide(&Ask{Method: http.MethodGet, Path: path, Page: path == "/", Host: "evil.example", Unasked: true}); got == nil || got.Status != http.StatusMisdirectedRequest {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// Over plain text browsers say no Sec-Fetch-*. Where no token is asked there, what they say nothing of is refused: an image of any
// page asks so.
func TestBrowsersThatSayNothing(t *testing.T) {
	t.Parallel()
	const host = "192.168.1.5:7070"
	for name, c := range map[string]struct {
		ask    Ask
		status int
	}{
		"an image without a referer":   {Ask{Browser: true, Path: "/clickhouse/"}, 403},
		"typed":                        {Ask{Browser: true, Path: "/v1/topics"}, 403},
		"a program":                    {Ask{Path: "/clickhouse/"}, 0},
		"the page":                     {Ask{Browser: true, Page: true, Path: "/"}, 0},
		"health":                       {Ask{Browser: true, Path: "/healthz"}, 0},
		"the page's reads":             {Ask{Browser: true, Path: "/v1/topics", Referer: "http://" + host + "/"}, 0},
		"the page's writes":            {Ask{Browser: true, Method: http.MethodPost, Path: "/v1/sql", Origin: "http://" + host}, 0},
		"another page's reads":         {Ask{Browser: true, Path: "/v1/topics", Referer: "http://evil.example/"}, 403},
		"over TLS, what browsers tell": {Ask{Browser: true, Path: "/v1/topics", Site: "same-origin"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := c.ask
			ask.Host, ask.Unasked = host, true
			if ask.Method == "" {
				ask.Method = http.MethodGet
			}
			if got := Decide(&ask); (got == nil) != (c.status == 0) || got != nil && got.Status != c.status {
				t.Errorf("%v, want %d", got, c.status)
			}
			if ask.Unasked = false; c.ask.Referer == "" && Decide(&ask) != nil {
				t.Error("refused where tokens are asked")
			}
		})
	}
}
