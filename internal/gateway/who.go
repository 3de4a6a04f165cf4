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
	Authenticate(ctx context.Context, a *access.Asked) (p *access.Principal, why string, err error)
}

// Unasked says who needs no secret for what changes nothing that is stored and does not cost
// without bound.
type Unasked int

// Those who need none: programs of this machine over a listener on loopback, all clients, or none
// at all.
const (
	UnaskedLoopback Unasked = iota
	UnaskedAll
	UnaskedNone
)

func (u Unasked) free(loopback bool) bool { return u == UnaskedAll || u == UnaskedLoopback && loopback }

// Identify returns the function by which a listener finds out who asks. A client without a secret
// may do what unasked says. So may one whose certificate no token names. Health is for all.
func Identify(tokens Authenticator, unasked Unasked, refused OnRefused) func(context.Context, *access.Asked) (*access.Principal, error) {
	return func(ctx context.Context, a *access.Asked) (*access.Principal, error) {
		p, err := identify(ctx, tokens, unasked, refused, a)
		if p != nil {
			peer := a.Peer
			p.OnDenied = func(d *access.Denied) { refused(refusalOf(d, d.Error(), peer)) }
		}
		return p, err
	}
}

func identify(ctx context.Context, tokens Authenticator, unasked Unasked, refused OnRefused, a *access.Asked) (*access.Principal, error) {
	// Without a token's form it is not a secret, or a password that the client insists on sending: its
	// sender is anonymous and not refused.
	formed := access.Formed(a.Secret)
	if !formed && a.Subject == "" {
		return access.Anonymous(unasked.free(a.Loopback)), nil
	}
	p, why, err := tokens.Authenticate(ctx, a)
	if err != nil {
		refused(refusalOf(err, why, a.Peer))
	}
	if err != nil && !formed {
		return access.Anonymous(unasked.free(a.Loopback)), nil
	}
	return p, err
}

// Refusal is a request that is refused for who sent it.
type Refusal struct {
	Reason access.Reason
	// Token is the name of the token, where it is one that is known.
	Token string
	// Peer is where the request came from; not valid where that is not known.
	Peer netip.Addr
	// Why says more, without the secret; empty: the reason says all.
	Why string
}

func refusalOf(err error, why string, peer netip.Addr) Refusal {
	return Refusal{Reason: access.ReasonOf(err), Token: access.NameOf(err), Peer: peer, Why: why}
}

// OnRefused hears of each request that is refused for who sent it.
type OnRefused func(Refusal)

// identify is Identify of the gateway; nil where nothing is asked.
func (g *Gateway) identify() func(context.Context, *access.Asked) (*access.Principal, error) {
	if g.cfg.Tokens == nil {
		return nil
	}
	return Identify(g.cfg.Tokens, g.cfg.Unasked, g.cfg.OnRefused)
}
