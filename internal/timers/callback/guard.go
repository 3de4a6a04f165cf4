package callback

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"

	"github.com/almanac-events/almanac/schemas/timer"
)

// ErrBlocked: the address is one that is not called.
var ErrBlocked = errors.New("blocked address")

// guard judges each address that is about to be dialled.
type guard struct {
	allow  []Range
	public *ssrf.Guardian
}

func newGuard(allow []Range) *guard { return &guard{allow: allow, public: ssrf.New()} }

// control implements net.Dialer.Control.
func (g *guard) control(network, address string, c syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err == nil && (network == "tcp4" || network == "tcp6") {
		for i := range g.allow {
			if g.allow[i].contains(to) {
				return nil
			}
		}
	}
	if err := g.public.Safe(network, address, c); err != nil {
		return fmt.Errorf("%w: %w", ErrBlocked, err)
	}
	return nil
}

// classifyError says what an error of the transport to a host means. Of a name that resolves to an
// address which is not called it says what it says of one that does not resolve: a caller that makes timers
// must not find out by them which names the operator's network has.
func classifyError(host string, err error) timer.Outcome {
	v := timer.Outcome{Kind: timer.TryAgain, Error: timer.ErrUnreachable}
	var (
		timeout net.Error
		lookup  *net.DNSError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		name    x509.HostnameError
	)
	_, notAddress := netip.ParseAddr(host)
	switch {
	case errors.Is(err, ErrBlocked) && notAddress == nil:
		v.Kind, v.Error = timer.Fail, timer.ErrBlocked
	case errors.Is(err, ErrBlocked), errors.As(err, &lookup):
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		v.Error = timer.ErrTimeout
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &name):
		v.Error = timer.ErrTLS
	}
	return v
}

// details are what is said of an error of the transport beside its word. The transport's own text
// names the resolver, and the address that a name has inside.
var details = map[string]string{
	timer.ErrBlocked:     "timers do not call this address and port; the operator may allow them, by timers_allow_cidrs",
	timer.ErrUnreachable: "the host does not have an address that timers call, or nothing answers there",
	timer.ErrTimeout:     "the answer did not come in time",
	timer.ErrTLS:         "TLS failed: the host's certificate is not valid for it, or it does not speak TLS",
}
