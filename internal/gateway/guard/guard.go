package guard

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"runtime/debug"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// Refuser answers with an error in the shape of a listener's protocol.
type Refuser func(http.ResponseWriter, *http.Request, error)

// Config says how refusals are answered, and who hears of panics.
type Config struct {
	Fail    Refuser
	OnError func(error)
	// Loopback says that the listener is on loopback. One that others reach too asks this machine's programs for a secret as well: a
	// proxy or a sidecar in front of it comes from loopback.
	Loopback bool
	// Unasked says that the listener asks no client for a token, and others reach it over plain text; Hosts are names that it has.
	Unasked bool
	Hosts   []string
	// Page says which paths are those of a page, which a browser may go to; nil: none.
	Page func(path string) bool
	// OnRefused hears the code of each request that Decide refuses, or that has two secrets; nil: it is not heard.
	OnRefused func(code string)
	// Who says who asks; nil: Almanac itself, of whom nothing is asked.
	Who func(context.Context, *access.Asked) (*access.Principal, error)
}

// badHeader is the code of a request that has two secrets.
const badHeader = "bad_header"

// answers are the headers of every answer. A handler whose answer is a page replaces them.
var answers = map[string]string{
	"X-Content-Type-Options":       "nosniff",
	"Content-Security-Policy":      "sandbox; default-src 'none'; frame-ancestors 'none'",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"Cache-Control":                "no-store",
}

// Handler passes on what may come in, under an id.
func Handler(next http.Handler, cfg Config) http.Handler {
	return request.WithID(cfg.recovered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range answers {
			w.Header().Set(name, value)
		}
		ask := askOf(r)
		ask.Unasked, ask.Hosts = cfg.Unasked, cfg.Hosts
		ask.Page = cfg.Page != nil && cfg.Page(r.URL.Path)
		if name := access.Several(r.Header); name != "" {
			if cfg.OnRefused != nil {
				cfg.OnRefused(badHeader)
			}
			cfg.Fail(w, r, request.Refuse(http.StatusBadRequest, badHeader, "the request has several "+name+" headers", "send one: what is between may have judged by another"))
			return
		}
		if len(r.TransferEncoding) > 0 && access.Forwarded(r.Header) {
			// A length beside it was passed over. A proxy that went by that sends the rest of the body as the next request.
			w.Header().Set("Connection", "close")
		}
		if refused := Decide(ask); refused != nil {
			if cfg.OnRefused != nil {
				cfg.OnRefused(refused.Code)
			}
			cfg.Fail(w, r, refused)
			return
		}
		if to := moved(r.URL); r.Method != http.MethodConnect && to != "" {
			w.Header().Set("Location", to)
			cfg.Fail(w, r, request.Refuse(http.StatusTemporaryRedirect, "moved", "the path has a part that is empty, . or ..", "ask for "+to))
			return
		}
		who := access.Almanac
		if cfg.Who != nil {
			var err error
			if who, err = cfg.Who(r.Context(), asked(r, cfg.Loopback && ask.Loopback)); err != nil {
				cfg.Fail(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(access.With(r.Context(), who)))
	})))
}

// moved is where an address leads whose path has parts that are empty, . or ..; empty: the path is clean. An http.ServeMux would lead there by
// a page.
func moved(u *url.URL) string {
	p := u.EscapedPath()
	if !strings.HasPrefix(p, "/") {
		return ""
	}
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	if clean == p {
		return ""
	}
	if u.RawQuery != "" {
		clean += "?" + u.RawQuery
	}
	return clean
}

// asked is what tells who sent a request.
func asked(r *http.Request, loopback bool) *access.Asked {
	a := &access.Asked{Secret: access.SecretOf(r.Header), Peer: peerOf(r.RemoteAddr), Loopback: loopback && !access.Forwarded(r.Header)}
	if r.TLS != nil {
		a.Subject, a.SubjectEnds = request.SubjectOf(r.TLS)
	}
	return a
}

// peerOf is the address in a connection's; not valid where there is none.
func peerOf(address string) netip.Addr {
	a, _ := netip.ParseAddrPort(address)
	return a.Addr()
}

func askOf(r *http.Request) *Ask {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	a, ok := local.(*net.TCPAddr)
	return &Ask{
		Method: r.Method, Path: r.URL.Path, Host: r.Host, Loopback: ok && a.IP.IsLoopback(),
		Browser: strings.HasPrefix(r.UserAgent(), "Mozilla/"), // all begin so
		Site:    r.Header.Get("Sec-Fetch-Site"), Mode: r.Header.Get("Sec-Fetch-Mode"), Dest: r.Header.Get("Sec-Fetch-Dest"),
		Origin: r.Header.Get("Origin"), Referer: r.Header.Get("Referer"),
	}
}

// recovered answers 500 where a handler panics, and reports the stack.
func (c Config) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // it is compared so in net/http
				panic(v)
			}
			stack := debug.Stack()
			if p, ok := v.(*fanout.Panic); ok { // of a function that ran beside
				v, stack = p.Value, p.Stack
			}
			if c.OnError != nil {
				c.OnError(request.Panicked(r.Method+" "+r.URL.Path, v, stack))
			}
			c.Fail(w, r, request.Refuse(http.StatusInternalServerError, "internal", "a fault in the gateway ended this request", "report it with the request's id"))
		}()
		next.ServeHTTP(w, r)
	})
}
