package gateway

import (
	"context"
	"net/netip"

	"github.com/almanac-events/almanac/internal/access"
)

// Authenticator tells whose secret it is (access/keep).
type Authenticator interface {
	// Run keeps what is known of tokens true until ctx ends.
	Run(ctx context.Context) error
	Authenticate(ctx context.Context, secret string, peer netip.Addr) (p *access.Principal, why string, err error)
}

// who is what each listener finds out who asks by; nil where nothing is asked. A client without a secret may do on
// loopback what changes nothing that is stored and does not cost without bound.
func (g *Gateway) who() func(ctx context.Context, secret string, peer netip.Addr, loopback bool) (*access.Principal, error) {
	if g.cfg.Tokens == nil {
		return nil
	}
	return func(ctx context.Context, secret string, peer netip.Addr, loopback bool) (*access.Principal, error) {
		if !access.Formed(secret) { // none, or a password that a client must have for its own sake: never a token's
			return access.Anonymous(loopback), nil
		}
		p, why, err := g.cfg.Tokens.Authenticate(ctx, secret, peer)
		if err != nil {
			g.cfg.OnRefused(why)
		}
		return p, err
	}
}
