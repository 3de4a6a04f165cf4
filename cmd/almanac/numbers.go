package main

import (
	"sync"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/ops/families"
	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// processNumbers are those of this process. A part that starts again goes on counting.
type processNumbers struct {
	*metrics.Registry
	router func() *families.Router
	sinks  func() *families.Sinks
	proofs func() *families.Proofs
	inputs func() *families.Inputs
}

// newNumbers makes the registry of this process.
func newNumbers(log zerolog.Logger) *processNumbers {
	v, again := thisVersion(), newRationer()
	r := metrics.New(metrics.Config{Version: v.Version, Commit: v.Commit, Go: v.Go, OnError: func(source string, err error) {
		if more, ok := again.pass(source); ok {
			log.Warn().Err(err).Str("source", source).Int("more", more).Msg("/metrics lacks the numbers of a source")
		}
	}})
	return &processNumbers{
		Registry: r,
		router:   sync.OnceValue(func() *families.Router { return families.NewRouter(r) }),
		sinks:    sync.OnceValue(func() *families.Sinks { return families.NewSinks(r) }),
		proofs:   sync.OnceValue(func() *families.Proofs { return families.NewProofs(r) }),
		inputs:   sync.OnceValue(func() *families.Inputs { return families.NewInputs(r, access.Reasons()...) }),
	}
}

// refused counts why tokens, certificates and rights are refused, and logs of secrets and certificates why, a few times a minute.
func (n *processNumbers) refused(log zerolog.Logger) gateway.OnRefused {
	again := newRationer()
	return func(reason access.Reason, why string) {
		n.inputs().Refused(string(reason))
		if why == "" {
			return
		}
		if more, ok := again.pass("tokens"); ok {
			log.Warn().Str("why", why).Int("more", more).Msg("a token was refused")
		}
	}
}
