package gateway

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
)

// fixed are tokens that do not change.
type fixed struct{ *access.Tokens }

func (fixed) Run(context.Context) error { return nil }

func (f fixed) Authenticate(_ context.Context, a *access.Asked) (*access.Principal, string, error) {
	a.At = time.Now()
	if a.Subject != "" {
		return f.Certified(a)
	}
	return f.Tokens.Authenticate(a)
}

// Each refusal says its reason, why and from where, and the name of the token alone where it is a known one.
func TestRefusals(t *testing.T) {
	t.Parallel()
	token := func(name string, change func(*access.Token)) (secret string, tok access.Token) {
		secret, id := access.NewSecret()
		tok = access.Token{Name: name, ID: id, Digest: access.DigestOf(secret), Grants: []access.Grant{{Role: access.RoleRead, Topics: []string{"app"}}}}
		change(&tok)
		return secret, tok
	}
	valid, a := token("api", func(*access.Token) {})
	ended, b := token("web", func(t *access.Token) { t.Expires = time.Now().Add(-time.Hour) })
	elsewhere, c := token("lan", func(t *access.Token) { t.From = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	unknown, _ := token("x", func(*access.Token) {})
	cut := len(valid) - 4
	wrong := valid[:cut] + strings.Map(func(r rune) rune { return map[bool]rune{true: 'B', false: 'A'}[r == 'A'] }, valid[cut:])
	peer := netip.MustParseAddr("192.0.2.7")
	for name, step := range map[string]struct {
		of   access.Asked
		want Refusal
	}{
		"unknown":         {access.Asked{Secret: unknown}, Refusal{access.ReasonUnknown, "", peer, "no token has"}},
		"wrong":           {access.Asked{Secret: wrong}, Refusal{access.ReasonWrong, "api", peer, "a wrong secret"}},
		"ended":           {access.Asked{Secret: ended}, Refusal{access.ReasonExpired, "web", peer, "ended"}},
		"another network": {access.Asked{Secret: elsewhere}, Refusal{access.ReasonNetwork, "lan", peer, "another network"}},
		"a certificate":   {access.Asked{Subject: "CN=x", SubjectEnds: time.Now().Add(time.Hour)}, Refusal{access.ReasonCertificate, "", peer, "CN=x"}},
		"a role":          {access.Asked{Secret: valid}, Refusal{access.ReasonDenied, "api", peer, `role write or admin for topic "shop"`}},
		"no token":        {access.Asked{}, Refusal{access.ReasonNone, "", peer, `role write or admin for topic "shop"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var heard []Refusal
			asks := Identify(fixed{access.NewTokens([]access.Token{a, b, c})}, UnaskedNone, func(r Refusal) { heard = append(heard, r) })
			step.of.Peer = peer
			p, err := asks(t.Context(), &step.of)
			if err == nil && len(heard) == 0 {
				_ = p.Refused(p.May(access.Send, "shop"))
			}
			if len(heard) != 1 {
				t.Fatalf("heard %+v, %v", heard, err)
			}
			got := heard[0]
			if got.Reason != step.want.Reason || got.Token != step.want.Token || got.Peer != peer || !strings.Contains(got.Why, step.want.Why) {
				t.Errorf("%+v, want %+v", got, step.want)
			}
			for _, secret := range []string{valid, wrong, ended, elsewhere, unknown} {
				if strings.Contains(got.Why, secret) {
					t.Errorf("a secret is in %q", got.Why)
				}
			}
			if remedy := got.Reason.Remedy(got.Token); remedy == "" || got.Reason == access.ReasonExpired && !strings.Contains(remedy, got.Token) {
				t.Errorf("remedy %q", remedy)
			}
		})
	}
}
