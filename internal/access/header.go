package access

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// forwarded are headers by which a proxy says that a request is another machine's.
var forwarded = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip"}

// Forwarded reports whether a request came by a proxy: its connection does not tell who asks.
func Forwarded(h http.Header) bool {
	return slices.ContainsFunc(forwarded, func(name string) bool { return len(h.Values(name)) > 0 })
}

// Headers in which clients send secrets.
const (
	headerAuthorization = "Authorization"
	headerClickHouseKey = "X-ClickHouse-Key"
)

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
