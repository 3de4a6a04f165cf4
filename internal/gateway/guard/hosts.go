package guard

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// privateZones are ends of names that cannot be registered, so that no page elsewhere has such a name for this address.
var privateZones = []string{".internal", ".local", ".localhost", ".svc", ".home.arpa"}

// private reports whether a host cannot be another's name for this address: it is an address, a name without a dot, one of a
// private zone, or one of names.
func private(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")); err == nil {
		return true
	}
	return !strings.Contains(host, ".") || slices.Contains(names, host) || slices.ContainsFunc(privateZones, func(zone string) bool { return strings.HasSuffix(host, zone) })
}
