package main

import (
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway"
)

const (
	// refusalPeriod is how far apart two lines of a token and a reason are, or of a network and a reason.
	refusalPeriod = time.Minute
	// maxRefusedNetworks bounds the networks without a known token that have lines of their own, so many a minute: a flood comes from any
	// number of them. Those beyond it share a line. Tokens that are known are access.MaxTokens at most.
	maxRefusedNetworks = 60
	// maxRefusedWhy bounds a line: a topic that a client made up is in it.
	maxRefusedWhy = 500
)

// refused counts why tokens, certificates and rights are refused, and logs who was, why, and what to do. A flood of unknown secrets does
// not hide a client whose token ended: each known token has its own lines.
func (n *processNumbers) refused(log zerolog.Logger) gateway.OnRefused {
	tokens := rationerOf(refusalPeriod, access.MaxTokens)
	networks := rationerOf(refusalPeriod, maxRefusedNetworks)
	return func(r gateway.Refusal) {
		n.inputs().Refused(string(r.Reason))
		if r.Why == "" {
			return
		}
		ration, who := networks, network(r.Peer)
		if r.Token != "" {
			ration, who = tokens, r.Token
		}
		more, ok := ration.pass(string(r.Reason) + " " + who)
		if !ok {
			return
		}
		line := log.Warn().Str("reason", string(r.Reason)).Str("why", bounded(access.Masked(r.Why), maxRefusedWhy))
		if r.Token != "" {
			line = line.Str("token", r.Token)
		}
		if r.Peer.IsValid() {
			line = line.Stringer("from", r.Peer)
		}
		line.Str("remedy", r.Reason.Remedy(r.Token)).Int("more", more).Msg("a request was refused for who sent it")
	}
}

// network is what refusals of unknown clients are told apart by: the /24 of IPv4, the /64 of IPv6.
func network(a netip.Addr) string {
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, err := a.WithZone("").Prefix(bits)
	if err != nil || !p.IsValid() { // of an address that is not known
		return "nowhere"
	}
	return p.String()
}

// bounded cuts a text at so many bytes, between characters.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
