package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/ops/export"
	"github.com/almanac-events/almanac/internal/ops/families"
	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// processNumbers are those of this process. A part that starts again goes on counting.
type processNumbers struct {
	*metrics.Registry
	router func() *families.Router
	sinks  func() *families.Sinks
	alerts func() *families.Evaluator
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
		alerts:   sync.OnceValue(func() *families.Evaluator { return families.NewEvaluator(r) }),
		proofs:   sync.OnceValue(func() *families.Proofs { return families.NewProofs(r) }),
		inputs:   sync.OnceValue(func() *families.Inputs { return families.NewInputs(r, access.Reasons()...) }),
	}
}

// exportEvery is how far apart this process sends its numbers. It is a variable so that a test need not wait so long.
var exportEvery = export.Every

// exporter is the part that sends the numbers to an OTLP endpoint.
func (n *processNumbers) exporter(s *settings, log zerolog.Logger) part {
	return partFunc(func(ctx context.Context) error {
		if s.OTLPExport == "" {
			<-ctx.Done()
			return nil
		}
		missed := 0 // posts that were not taken, since one was
		host, _ := os.Hostname()
		e := export.Exporter{
			URL: s.OTLPExport, Headers: s.OTLPExportHeaders, Roots: s.OTLPExportCA, Gather: n.Gather, Every: exportEvery,
			LastWait: min(export.LastWait, s.ShutdownTimeout/4),
			Resource: map[string]string{"service.name": "almanac", "service.version": thisVersion().Version, "service.instance.id": fmt.Sprintf("%s-%d", host, os.Getpid()), "host.name": host},
			OnPost: func(err error) {
				switch {
				case err != nil:
					if missed++; missed == 1 {
						log.Warn().Err(err).Msg("the OTLP endpoint (otlp_export) did not take this process's numbers; it is asked again, and said once it takes them")
					}
				case missed > 0:
					log.Info().Int("missed", missed).Msg("the OTLP endpoint (otlp_export) takes this process's numbers again")
					missed = 0
				}
			},
		}
		return e.Run(ctx)
	})
}
