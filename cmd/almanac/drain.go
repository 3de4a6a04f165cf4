package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/ops"
)

// drainKeys are the settings that each process has which runs parts: where its numbers go, and how it ends.
var drainKeys = []string{"otlp_export", "otlp_export_headers", "otlp_export_ca", "drain_delay", "shutdown_timeout"}

// draining returns a context that ends drain_delay after ctx does. Meanwhile the process works as before, and is not ready:
// who sends it requests has the time to learn of it. unready is called at once. asked is how the process is asked whether it works.
func draining(ctx context.Context, s *settings, log zerolog.Logger, unready func(), asked func(context.Context) []ops.Reason) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatched := supervised(log, func(ctx context.Context) { asked(ctx) })
	stop := context.AfterFunc(ctx, func() {
		unready()
		tellStopping(log)
		if by := stopCause(ctx); by != nil {
			log.Info().Str("signal", by.String()).Dur("drain_delay", s.DrainDelay).Msg("stopping; press Ctrl-C again to stop at once")
		}
		_ = backoff.Sleep(later, s.DrainDelay)
		cancel(context.Cause(ctx))
	})
	return later, func() {
		stop()
		unwatched()
		cancel(nil)
	}
}

// stage are parts that end together.
type stage []part

// runStages runs the parts of all stages until ctx ends or one part does. Then the stages end in order, each once no part of
// those before it runs: what one takes, the next carries on. All of that takes at most patience.
func runStages(ctx context.Context, patience time.Duration, stages ...stage) error {
	type end struct {
		stage int
		err   error
	}
	left, all := make([]int, len(stages)), 0
	cancels := make([]context.CancelFunc, len(stages))
	ended := make(chan end)
	over := make(chan struct{}) // their ends are not taken any more
	defer close(over)
	for i, parts := range stages {
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		left[i], cancels[i] = len(parts), cancel
		all += len(parts)
		for _, p := range parts {
			go func() {
				select {
				case ended <- end{i, p.Run(running)}:
				case <-over:
				}
			}()
		}
	}
	var first error
	var late <-chan time.Time
	for stopping, next := ctx.Done(), 0; all > 0; {
		select {
		case <-stopping:
		case e := <-ended:
			left[e.stage]--
			all--
			if first == nil {
				first = e.err
			}
		case <-late:
			return errors.Join(first, fmt.Errorf("%d parts did not end within shutdown_timeout (%s); what was accepted is on disk", all, patience))
		}
		if late == nil {
			stopping = nil
			timer := time.NewTimer(patience)
			defer timer.Stop()
			late = timer.C
		}
		for next < len(stages) && (next == 0 || left[next-1] == 0) {
			cancels[next]()
			next++
		}
	}
	return first
}
