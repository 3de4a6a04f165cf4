package bench

import (
	"context"
	"time"
)

// fullLoad is the share of the rate just measured at which latencies "at full
// load" are taken: above it buffers fill, and Log gets cheap by dropping.
const fullLoad = 0.9

// logLatency is what one call of Log costs its caller while the whole pipeline
// runs at full load beside it.
func logLatency(ctx context.Context, s *Suite) ([]Figure, error) {
	var all, late samples
	var rate float64
	var dropped, logged uint64
	err := s.underLoad(ctx, func(ctx context.Context, cfg *Config, full float64) error {
		rate = full * fullLoad
		stop, err := startPaced(ctx, cfg, rate, 7) // a prime: frames close every 2,000 events
		if err != nil {
			return err
		}
		s.hold(ctx, "log-p99", 15*time.Second)
		ws, err := stop()
		for _, w := range ws {
			all, late = append(all, w.own...), append(late, w.late...)
			logged += uint64(w.logged)
			dropped += w.ps[0].Stats().DroppedTotal()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	p99 := micros(all.quantile(0.99))
	f := atMost("log_p99", "a call of Log at full load, 99th percentile", p99, unitMicros, 5,
		"4 producers at 90 %% of the rate just measured (%s events/s), pipeline on the same cores, open schedule, %s calls timed, %d of %d dropped: "+
			"p50 %.2f, p99.9 %.0f µs; with the wait for a core counted (from the instant the schedule had it) p99 %.0f µs",
		count(int(rate)), count(len(all)), dropped, logged, micros(all.quantile(0.5)), micros(all.quantile(0.999)), micros(late.quantile(0.99)))
	return []Figure{f.raw("p50_us", micros(all.quantile(0.5)), "p99_us", p99, "p999_us", micros(all.quantile(0.999)),
		"from_schedule_p99_us", micros(late.quantile(0.99)), "events_per_second", rate)}, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// underLoad starts a cluster with router and sinks, measures the rate it takes, and
// calls measure with it.
func (s *Suite) underLoad(ctx context.Context, measure func(ctx context.Context, cfg *Config, full float64) error) error {
	w, err := s.work(ctx, Config{Events: s.size(3_000_000)})
	if err != nil {
		return err
	}
	defer w.end()
	if err := warm(w.ctx, &w.cfg, w.topics); err != nil {
		return w.failed(err)
	}
	stored, err := w.loaded()
	if err != nil {
		return err
	}
	return w.failed(measure(w.ctx, &w.cfg, float64(w.cfg.Events)/stored))
}

// hold waits, or a tenth of it under Quick.
func (s *Suite) hold(ctx context.Context, phase string, d time.Duration) {
	if s.Size == Quick {
		d /= 10
	}
	t := time.NewTicker(d / 20)
	defer t.Stop()
	for i := range 20 {
		s.Progress("", phase, i, 20)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
