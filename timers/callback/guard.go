package callback

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"

	"github.com/almanac-events/almanac/schemas/timer"
)

// ErrBlocked: the address is one that is not called.
var ErrBlocked = errors.New("blocked address")

// guard judges each address that is about to be dialled.
type guard struct {
	allow  []netip.Prefix
	public *ssrf.Guardian
}

func newGuard(allow []netip.Prefix) *guard { return &guard{allow: allow, public: ssrf.New()} }

// control implements net.Dialer.Control.
func (g *guard) control(network, address string, c syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err == nil && (network == "tcp4" || network == "tcp6") {
		for _, p := range g.allow {
			if p.Contains(to.Addr().Unmap().WithZone("")) {
				return nil
			}
		}
	}
	if err := g.public.Safe(network, address, c); err != nil {
		return fmt.Errorf("%w: %w; only the operator may allow it, by timers_allow_cidrs", ErrBlocked, err)
	}
	return nil
}

// ParseCIDRs reads address ranges that are separated by commas. A plain address is itself.
func ParseCIDRs(text string) (out []netip.Prefix, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			a, e := netip.ParseAddr(part)
			if e != nil {
				return nil, fmt.Errorf("%q is not a range of addresses, such as 10.0.0.0/8 or ::1/128", part)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// classifyError says what an error of the transport means.
func classifyError(err error) timer.Verdict {
	v := timer.Verdict{Kind: timer.TryAgain, Error: timer.ErrUnreachable}
	var (
		timeout net.Error
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		name    x509.HostnameError
	)
	switch {
	case errors.Is(err, ErrBlocked):
		v.Kind, v.Error = timer.Fail, timer.ErrBlocked
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		v.Error = timer.ErrTimeout
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &name):
		v.Error = timer.ErrTLS
	}
	return v
}
