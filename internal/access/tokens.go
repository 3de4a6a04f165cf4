package access

import (
	"crypto/subtle"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Token is who holds a secret, and what it may do.
type Token struct {
	Name   string
	ID     string
	Digest Digest
	Grants []Grant
	// Expires is when it ends; zero: never.
	Expires time.Time
	// From are the networks that it may come from; none: any.
	From []netip.Prefix
	// Rate bounds what it sends; zero: no bound.
	Rate Rate
}

// Rate bounds what a token sends, a second.
type Rate struct {
	Events float64
	Bytes  float64
}

// Tokens are all that are known. The zero value knows none.
type Tokens struct{ byID map[string]*Token }

// NewTokens returns a set. Of several with one id the last counts.
func NewTokens(all ...[]Token) *Tokens {
	t := &Tokens{byID: map[string]*Token{}}
	for _, some := range all {
		for i := range some {
			t.byID[some[i].ID] = &some[i]
		}
	}
	return t
}

// Len returns how many tokens there are.
func (t *Tokens) Len() int { return len(t.byID) }

// Asked is what comes with a request.
type Asked struct {
	Secret string
	Peer   netip.Addr
	At     time.Time
}

// Authenticate returns who asks. Whatever is wrong with a secret, the error is ErrUnauthenticated, and the digests of two
// secrets are compared in constant time, also where no token has the id. Why says the reason, for the
// gateway's own log; it holds no secret.
func (t *Tokens) Authenticate(a *Asked) (p *Principal, why string, err error) {
	id, formed := idOf(a.Secret)
	token := t.byID[id]
	digest, kept := DigestOf(a.Secret), Digest{}
	if token != nil {
		kept = token.Digest
	}
	same := subtle.ConstantTimeCompare(digest[:], kept[:]) == 1
	switch {
	case !formed:
		return nil, "a secret that does not have the form of a token", ErrUnauthenticated
	case token == nil:
		return nil, "an id that no token has: " + id, ErrUnauthenticated
	case !same:
		return nil, "a wrong secret for token " + token.Name, ErrUnauthenticated
	case !token.Expires.IsZero() && !a.At.Before(token.Expires):
		return nil, "token " + token.Name + " ended " + token.Expires.UTC().Format(time.RFC3339), ErrUnauthenticated
	case len(token.From) > 0 && !slices.ContainsFunc(token.From, func(n netip.Prefix) bool { return n.Contains(a.Peer.Unmap()) }):
		return nil, "token " + token.Name + " from another network: " + a.Peer.String(), ErrUnauthenticated
	}
	return &Principal{Name: token.Name, Grants: token.Grants, Token: token}, "", nil
}

// Anonymous returns a client without a secret: on a loopback listener of an `up` it may do what OnLoopback has.
func Anonymous(loopback bool) *Principal {
	if !loopback {
		return &Principal{}
	}
	return &Principal{Free: OnLoopback}
}

// LocalName is the name of the local token.
const LocalName = "local"

// Local returns the token of a data directory's own secret, which may do everything.
func Local(secret string) (Token, error) {
	id, ok := idOf(secret)
	if !ok {
		return Token{}, fmt.Errorf("%w: it does not have the form of a secret", ErrToken)
	}
	return Token{Name: LocalName, ID: id, Digest: DigestOf(secret), Grants: []Grant{{Role: RoleAdmin}}}, nil
}
