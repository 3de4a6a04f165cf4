package guard

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/almanac-events/almanac/internal/gateway/request"
)

// Ask is what is known of a request before it is read.
type Ask struct {
	Method, Path string
	// Page says that the path is one of a page: its files are the same for all who ask.
	Page bool
	// Host is the one that the request names, Loopback whether its connection is this machine's own.
	Host     string
	Loopback bool
	// Unasked says that no client needs a token and that nothing else tells a page apart: the listener is reached by others, over
	// plain text, of which browsers say no Sec-Fetch-*. Hosts are the names that it has there, beside those of private networks.
	Unasked bool
	Hosts   []string
	// Browser says that a browser sends the request, as User-Agent says, which no page can change.
	Browser bool
	// Site, Mode and Dest are Sec-Fetch-Site, Sec-Fetch-Mode and Sec-Fetch-Dest, Origin and Referer the headers of these names.
	Site, Mode, Dest, Origin, Referer string
}

// open are the paths that any page may have a browser go to.
var open = map[string]bool{"/healthz": true, "/readyz": true, "/version": true, "/openapi.yaml": true}

// Decide returns why a request is refused; nil when it may go on.
func Decide(a *Ask) *request.Error {
	switch {
	case a.Loopback && !loopback(a.Host):
		return request.Refuse(http.StatusMisdirectedRequest, "wrong_host",
			fmt.Sprintf("the request names the host %q, and this listener is on loopback", a.Host), "use 127.0.0.1 or localhost")
	case a.Unasked && !private(a.Host, a.Hosts):
		return request.Refuse(http.StatusMisdirectedRequest, "wrong_host",
			fmt.Sprintf("the request names the host %q, which may be another's name for this address, and no token is asked here", a.Host),
			"use the address or a name without a dot, add the name to insecure_hosts, or give the gateway TLS or tokens")
	case (open[a.Path] || a.Page && a.goes()) && (a.Method == http.MethodGet || a.Method == http.MethodHead):
		return nil
	case a.Mode == "navigate":
		return request.Refuse(http.StatusForbidden, "navigation", "a browser may not go to this address", "ask with a program, such as curl")
	case a.foreign():
		return request.Refuse(http.StatusForbidden, "cross_origin", "a page of another origin may not send requests here", "ask with a program, such as curl")
	}
	if a.Unasked && a.Browser && !a.Page && a.Site == "" && a.Origin == "" && a.Referer == "" {
		return request.Refuse(http.StatusForbidden, "navigation", "a browser asks for this and does not say for which page", "ask with a program, such as curl")
	}
	return nil
}

// goes reports whether a browser goes to the address by itself: it is typed or a link, and not in a frame or a script of
// another page.
func (a *Ask) goes() bool { return a.Mode == "navigate" && (a.Dest == "" || a.Dest == "document") }

// foreign reports whether a page of another origin sent the request.
func (a *Ask) foreign() bool {
	switch {
	case a.Site != "":
		return a.Site != "same-origin" && a.Site != "none"
	case a.Origin != "":
		return !names(a.Origin, a.Host)
	case a.Referer != "":
		return !names(a.Referer, a.Host)
	}
	return false
}

// names reports whether an address is one of a host.
func names(address, host string) bool {
	u, err := url.Parse(address)
	return err == nil && host != "" && u.Host == host
}

func loopback(host string) bool {
	if h, port, err := net.SplitHostPort(host); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return false
		}
		host = h
	}
	if host == "" || host == "localhost" {
		return true
	}
	if len(host) > 2 && host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
