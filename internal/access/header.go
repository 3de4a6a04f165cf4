package access

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// forwarded are headers by which a proxy says that a request is another machine's, beside those that begin with forwardedPrefix.
var forwarded = []string{"Cdn-Loop", "Cf-Connecting-Ip", "Fly-Client-Ip", "Forwarded", "True-Client-Ip", "Via", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Envoy-External-Address", "X-Original-Forwarded-For", "X-Real-Ip"}

const forwardedPrefix = "X-Forwarded-"

// Forwarded reports whether a request came by a proxy: its connection does not tell who asks. Any one of the headers tells, whatever is
// in it: proxies are set up with some of them and not with others.
func Forwarded(h http.Header) bool {
	for name := range h {
		if name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")); strings.HasPrefix(name, forwardedPrefix) || slices.Contains(forwarded, name) {
			return true
		}
	}
	return false
}

// Headers in which clients send secrets.
const (
	headerAuthorization = "Authorization"
	headerClickHouseKey = "X-ClickHouse-Key"
)

// Several names the headers with a secret of which a request has more than one; empty: it has one, or none. What is between may have
// judged by another than SecretOf does.
func Several(h http.Header) string {
	if len(h.Values(headerAuthorization)) > 0 && len(h.Values(headerClickHouseKey)) > 0 {
		return headerAuthorization + " and " + headerClickHouseKey
	}
	for _, name := range []string{headerAuthorization, headerClickHouseKey} {
		if len(h.Values(name)) > 1 {
			return name
		}
	}
	return ""
}

// SecretOf returns the secret of a request, in any of the ways that clients of the protocols have:
// Authorization as Bearer, as Basic (the password; the user is for people) or as ApiKey (Elastic: base64 of id:key),
// and ClickHouse's key header. Empty: there is none. A secret in an address is none: addresses are logged.
func SecretOf(h http.Header) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(h.Get(headerAuthorization)), " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(scheme) {
	case "bearer", "token":
		return rest
	case "basic", "apikey":
		text, err := base64.StdEncoding.DecodeString(rest)
		if err != nil {
			return rest // an ApiKey as it is
		}
		_, key, found := strings.Cut(string(text), ":")
		if !found {
			return string(text)
		}
		return key
	}
	return h.Get(headerClickHouseKey)
}
