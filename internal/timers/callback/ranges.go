package callback

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Range is addresses that may be called although they are private, on some of their ports.
type Range struct {
	Addresses netip.Prefix
	// Low and High are the first and the last port; 0 and 0 are 80 and 443, as of public addresses.
	Low, High uint16
}

// usualPorts are those of a range that names none.
var usualPorts = []uint16{80, 443}

// contains reports whether a connection to an address and port may be made.
func (r *Range) contains(to netip.AddrPort) bool {
	if !r.Addresses.Contains(to.Addr().Unmap().WithZone("")) {
		return false
	}
	if r.Low == 0 {
		return to.Port() == usualPorts[0] || to.Port() == usualPorts[1]
	}
	return r.Low <= to.Port() && to.Port() <= r.High
}

// NoPort reports whether the range names no port, and so opens 80 and 443 alone.
func (r *Range) NoPort() bool { return r.Low == 0 }

// String returns the range as it is written.
func (r *Range) String() string {
	switch {
	case r.Low == 0:
		return r.Addresses.String()
	case r.Low == r.High:
		return fmt.Sprintf("%s:%d", r.Addresses, r.Low)
	}
	return fmt.Sprintf("%s:%d-%d", r.Addresses, r.Low, r.High)
}

// ParseRanges reads ranges that are separated by commas: 10.1.0.0/16, 127.0.0.1/32:9000,
// [::1]:8000-8999. A plain address is itself.
func ParseRanges(text string) (out []Range, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		r, ok := parseRange(part)
		if !ok {
			return nil, fmt.Errorf("%q is not a range of addresses with its port or ports, such as 127.0.0.1/32:9000, 10.0.0.0/8:8000-8999 or [::1]:9000; without a port it is 80 and 443", part)
		}
		out = append(out, r)
	}
	return out, nil
}

func parseRange(text string) (r Range, ok bool) {
	addresses, ports := cutPorts(text)
	if ports != nil {
		low, high, many := strings.Cut(*ports, "-")
		if !many {
			high = low
		}
		lo, err := strconv.ParseUint(low, 10, 16)
		hi, err2 := strconv.ParseUint(high, 10, 16)
		if err != nil || err2 != nil || lo == 0 || lo > hi {
			return r, false
		}
		r.Low, r.High = uint16(lo), uint16(hi)
	}
	p, err := netip.ParsePrefix(addresses)
	if err != nil {
		if inner, ok := strings.CutPrefix(addresses, "["); ok {
			addresses, ok = strings.CutSuffix(inner, "]")
			if !ok {
				return r, false
			}
		}
		a, err := netip.ParseAddr(addresses)
		if err != nil {
			return r, false
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	r.Addresses = p.Masked()
	return r, true
}

// cutPorts splits what follows the addresses from them; nil: nothing does. Of an address of
// version 6 it follows the length of its prefix or a bracket, which a colon of its own does not.
func cutPorts(text string) (addresses string, ports *string) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 || strings.Count(text, ":") > 1 && !strings.ContainsAny(text[:i], "/]") {
		return text, nil
	}
	rest := text[i+1:]
	return text[:i], &rest
}
