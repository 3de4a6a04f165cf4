package access

import (
	"crypto/subtle"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Token is who holds a secret, or a certificate, and what it may do.
type Token struct {
	Name   string
	ID     string
	Digest Digest
	// Subject, in place of ID and Digest, is that of the holder's certificate, as RFC 2253 writes it: CN=api,O=Acme.
	Subject string
	Grants  []Grant
	// Expires is when it ends; zero: never.
	Expires time.Time
	// From are the networks that it may come from; none: any.
	From []netip.Prefix
	// Rate bounds what it sends; zero: no bound.
	Rate Rate
	// Where is a filter of the rows that it reads, of every topic; empty: all of them.
	Where string
}

// Rate bounds what a token sends, a second.
type Rate struct {
	Events float64
	Bytes  float64
}

// Tokens are all that are known. The zero value knows none.
type Tokens struct{ byID, bySubject map[string]*Token }

// NewTokens returns a set. Of several with one id or subject the last counts.
func NewTokens(all ...[]Token) *Tokens {
	t := &Tokens{byID: map[string]*Token{}, bySubject: map[string]*Token{}}
	for _, some := range all {
		for i := range some {
			if one := &some[i]; one.Subject != "" {
				t.bySubject[one.Subject] = one
			} else {
				t.byID[one.ID] = one
			}
		}
	}
	return t
}

// Len returns how many tokens there are.
func (t *Tokens) Len() int { return len(t.byID) + len(t.bySubject) }

// Asked is what comes with a request.
type Asked struct {
	Secret string
	// Subject is that of the certificate that the client showed and that was verified, and SubjectEnds when it is no longer
	// valid. Empty: none.
	Subject     string
	SubjectEnds time.Time
	Peer        netip.Addr
	// Loopback says that the request is this machine's own: over a listener on loopback, and by no proxy.
	Loopback bool
	At       time.Time
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
		return nil, "a secret that does not have the form of a token", &unauthenticated{reason: ReasonMalformed}
	case token == nil:
		return nil, "an id that no token has: " + id, &unauthenticated{reason: ReasonUnknown}
	case !same:
		return nil, "a wrong secret for token " + token.Name, &unauthenticated{ReasonWrong, token.Name}
	}
	return token.taken(a)
}

// Certified returns who asks by a certificate.
func (t *Tokens) Certified(a *Asked) (p *Principal, why string, err error) {
	token := t.bySubject[a.Subject]
	switch {
	case a.Subject == "" || token == nil:
		return nil, "a certificate whose subject no token has: " + a.Subject, &unauthenticated{reason: ReasonCertificate}
	case !a.At.Before(a.SubjectEnds): // the connection may have been made before
		return nil, "the certificate of token " + token.Name + " ended " + a.SubjectEnds.UTC().Format(time.RFC3339), &unauthenticated{ReasonExpired, token.Name}
	}
	return token.taken(a)
}

// taken returns the holder, where the token is valid at that time and from there.
func (t *Token) taken(a *Asked) (p *Principal, why string, err error) {
	switch {
	case !t.Expires.IsZero() && !a.At.Before(t.Expires):
		return nil, "token " + t.Name + " ended " + t.Expires.UTC().Format(time.RFC3339), &unauthenticated{ReasonExpired, t.Name}
	case len(t.From) > 0 && !slices.ContainsFunc(t.From, func(n netip.Prefix) bool { return n.Contains(a.Peer.Unmap().WithZone("")) }):
		return nil, "token " + t.Name + " from another network", &unauthenticated{ReasonNetwork, t.Name}
	}
	return &Principal{Name: t.Name, Grants: t.Grants, Where: t.Where, Token: t}, "", nil
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
