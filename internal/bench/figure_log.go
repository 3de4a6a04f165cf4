package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// logBatch is how many events one timed stretch logs: some 200 ms. logRounds of them
// take a minute.
const (
	logBatch  = 1_000_000
	logRounds = 25
)

// logWarmUp is how long it takes until columns and buffers have grown to their size
// and the producer has seen how its frames are best compressed: that takes 100 ms of
// logging at full speed.
const logWarmUp = 300 * time.Millisecond

// logCost compares Log with zerolog's writing of the same five fields to
// io.Discard. Log is the whole producer, the encoding of frames included; only
// the network is missing. In each round the two log on one core, and sixteen goroutines
// and one on all cores; of the rounds' ratios the median counts. How fast a core is
// changes by half from one second to the next where others have a share of it, so the
// rounds are many. With nine the same program had 0.75 to 1.01 against zerolog in five
// runs, and 0.67 to 0.86 a core; with these 0.80 to 0.84 and 0.68 to 0.76 in four.
func logCost(ctx context.Context, s *Suite) ([]Figure, error) {
	n, rounds := s.size(logBatch), s.size(logRounds)
	cores := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(cores)
	var ours, zero, many, alone, ratios, perCore []float64
	var allocs float64
	timed := func(to *[]float64, goroutines int) (err error) {
		var ns float64
		if ns, allocs, err = logFor(ctx, n, goroutines); err == nil {
			*to = append(*to, ns)
		}
		return err
	}
	for i := range rounds {
		s.Progress("", "log", i, rounds)
		// All in one round: what else the machine does in the meantime concerns them alike.
		runtime.GOMAXPROCS(cores)
		if err := errors.Join(ctx.Err(), timed(&many, 16), timed(&alone, 1)); err != nil {
			return nil, err
		}
		runtime.GOMAXPROCS(1)
		if err := timed(&ours, 1); err != nil {
			return nil, err
		}
		zero = append(zero, zerologFor(n))
		ratios = append(ratios, ours[i]/zero[i])
		perCore = append(perCore, ours[i]/(many[i]*float64(cores)))
	}
	one := median(ours)
	at, full := nearestTo(median(ratios), ratios), nearestTo(median(perCore), perCore)
	return []Figure{
		atMost("log", "Log with five fields on one core, against zerolog to io.Discard", median(ratios), unitRatio, 1,
			"median of %d rounds of %s events in turn, warmed up for %s, GOMAXPROCS=1, encoding the frames included: in that round %.0f ns against %.0f ns; where another core may encode, the caller takes %.0f ns", rounds, count(n), logWarmUp, ours[at], zero[at], median(alone)).
			raw("ns_per_event", one, "zerolog_ns_per_event", median(zero), "caller_ns_per_event", median(alone)),
		atMost("log_allocs", "allocations a call of Log", float64(int(allocs)), unitCount, 0,
			"as testing.AllocsPerRun rounds; %.4f with what a frame of 2,000 events allocates", allocs).raw("exact", allocs),
		atLeast("log_16", "16 goroutines that Log, a core, against one goroutine on one core", median(perCore), unitRatio, 0.7,
			"%d cores, one producer: in the round of the median %.0f ns an event in all, against %.0f ns", cores, many[full], ours[full]).
			raw("ns_per_event", median(many)),
	}, nil
}

// benchTopic is the topic that events of this package fit.
func benchTopic(name string) schemas.Topic {
	return schemas.NewTopic(name, schemas.Field{Name: "duration_ms", Type: schemas.TypeFloat64}, schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality})
}

var logUsers = func() (u [1024]string) {
	for i := range u {
		u[i] = "u-" + strconv.Itoa(i)
	}
	return u
}()

const logMessage = "user logged in from the office"

func fiveFields(i int, attrs []schemas.Attr) schemas.Event {
	return schemas.Event{Level: "info", Type: "login", UserID: logUsers[i%len(logUsers)], Message: logMessage, Attrs: attrs}
}

// logFor logs n events from so many goroutines and returns ns an event, until
// the last frame is encoded, and allocations an event.
func logFor(ctx context.Context, n, goroutines int) (ns, allocs float64, err error) {
	p, err := producer.NewDiscard(benchTopic("bench"), producer.Config{Policy: producer.Block, Stderr: io.Discard})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = p.Close(ctx) }()
	each := func(count int) {
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				attrs := []schemas.Attr{schemas.Float64("duration_ms", 12.5)}
				for i := range count / goroutines {
					p.Log(fiveFields(i+g*64, attrs))
				}
			})
		}
		wg.Wait()
	}
	for began := time.Now(); time.Since(began) < logWarmUp; {
		each(n / 4)
	}
	if err := p.Flush(ctx); err != nil {
		return 0, 0, err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	each(n)
	if err := p.Flush(ctx); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if d := p.Stats().DroppedTotal(); d > 0 {
		return 0, 0, fmt.Errorf("%d events were dropped", d)
	}
	return float64(took.Nanoseconds()) / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n), nil
}

// zerologFor writes n of the same lines and returns ns a line.
func zerologFor(n int) float64 {
	log := zerolog.New(io.Discard)
	line := func(i int) {
		log.Info().Timestamp().Str("type", "login").Str("user_id", logUsers[i%len(logUsers)]).Float64("duration_ms", 12.5).Msg(logMessage)
	}
	for i := range n / 4 {
		line(i)
	}
	runtime.GC()
	began := time.Now()
	for i := range n {
		line(i)
	}
	return float64(time.Since(began).Nanoseconds()) / float64(n)
}

// nearestTo returns where of values the nearest to v is: the round that a median is of.
func nearestTo(v float64, values []float64) (at int) {
	for i := range values {
		if math.Abs(values[i]-v) < math.Abs(values[at]-v) {
			at = i
		}
	}
	return at
}
