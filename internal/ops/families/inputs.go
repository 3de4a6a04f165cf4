package families

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/producer"
)

// Inputs counts what the inputs of a gateway get. Its methods are hooks, which are called a few times a request.
type Inputs struct {
	topics, tokens                                                           *metrics.Names
	requests, events, refused, received, decoded, throttled, repeated, token *prometheus.CounterVec
	auth, limits                                                             *prometheus.CounterVec
	took                                                                     *prometheus.HistogramVec
	last, tails                                                              *prometheus.GaugeVec
}

// NewInputs takes the numbers of the inputs. What an alert looks for counts from 0 on, so that the first one is an
// increase: each reason for which a request may be refused, each bound that may refuse one, and what syslog loses.
func NewInputs(r *metrics.Registry, reasons ...access.Reason) *Inputs {
	c := &Inputs{
		topics: r.Topics(), tokens: &metrics.Names{}, requests: r.Counter(metrics.InputRequests), events: r.Counter(metrics.InputEvents),
		refused: r.Counter(metrics.InputRefused), received: r.Counter(metrics.InputReceived), decoded: r.Counter(metrics.InputDecoded),
		throttled: r.Counter(metrics.InputThrottled), repeated: r.Counter(metrics.InputRepeated), token: r.Counter(metrics.TokenEvents),
		auth: r.Counter(metrics.AuthFailures), limits: r.Counter(metrics.Refused), took: r.Histogram(metrics.InputDuration), last: r.Gauge(metrics.InputLast), tails: r.Gauge(metrics.Tails),
	}
	for _, endpoint := range request.TailEndpoints {
		c.tails.WithLabelValues(endpoint)
	}
	for _, lost := range pool.Losses {
		c.refused.WithLabelValues(string(pool.InputSyslog), lost)
	}
	for _, reason := range reasons {
		c.auth.WithLabelValues(string(reason))
	}
	for _, what := range request.Sorts {
		for _, why := range request.Limits {
			c.limits.WithLabelValues(word(what), why)
		}
	}
	return c
}

// Pool returns the hooks of a pool.
func (c *Inputs) Pool() pool.Hooks {
	return pool.Hooks{
		Events: c.became,
		Refused: func(in pool.Input, reason string, n int) {
			c.refused.WithLabelValues(string(in), reason).Add(float64(n))
		},
		Throttled: func(in pool.Input, reason string) { c.throttled.WithLabelValues(string(in), reason).Inc() },
		Repeated:  func(in pool.Input) { c.repeated.WithLabelValues(string(in)).Inc() },
	}
}

func (c *Inputs) became(e *pool.Events) {
	topic := e.Topic
	if topic != "" && e.Outcome != pool.Refused { // a topic that is refused may be any word
		topic = c.topics.Of(topic)
	} else if topic != "" {
		topic = c.topics.Known(topic)
	}
	in := string(e.Input)
	c.events.WithLabelValues(in, topic, string(e.Outcome)).Add(float64(e.Count))
	c.decoded.WithLabelValues(in).Add(float64(e.Bytes))
	if e.Outcome != pool.Stored && e.Outcome != pool.Taken {
		return
	}
	c.last.WithLabelValues(in, topic).Set(unix(time.Now()))
	if e.Token != "" {
		c.token.WithLabelValues(c.tokens.Of(e.Token)).Add(float64(e.Count))
	}
}

// Request counts a request that was answered.
func (c *Inputs) Request(in pool.Input, code int, took time.Duration, received int64) {
	c.requests.WithLabelValues(string(in), strconv.Itoa(code)).Inc()
	c.took.WithLabelValues(string(in)).Observe(took.Seconds())
	c.received.WithLabelValues(string(in)).Add(float64(max(received, 0)))
}

// Refused counts a request that was refused for who sent it.
func (c *Inputs) Refused(reason string) { c.auth.WithLabelValues(reason).Inc() }

// Limited counts what a limit refused.
func (c *Inputs) Limited(what, why string) {
	c.limits.WithLabelValues(word(what), why).Inc()
}

// Tail counts a tail until what it returns is called.
func (c *Inputs) Tail(endpoint string) (ended func()) {
	followed := c.tails.WithLabelValues(endpoint)
	followed.Inc()
	return followed.Dec
}

// word makes one word of some.
func word(some string) string { return strings.ReplaceAll(some, " ", "_") }

// Producers is the source of what the producers of a pool have done.
func Producers(r *metrics.Registry, p *pool.Pool) metrics.Source {
	topics := r.Topics()
	return metrics.Source{Name: "producers", Read: func(context.Context) ([]metrics.Sample, error) {
		held, limit := p.InFlight()
		return append(ofProducers(topics, p.Stats()), metrics.InputInFlight.Is(float64(held)), metrics.InputsLimit.Is(float64(limit))), nil
	}}
}

// ofProducers returns the numbers of the producers of topics.
func ofProducers(topics *metrics.Names, all map[string]producer.Stats) []metrics.Sample {
	var out sums
	for topic := range all {
		s := all[topic]
		topic = topics.Of(topic)
		out.add(metrics.ProducerLogged, float64(s.Logged), topic)
		out.add(metrics.ProducerStored, float64(s.Stored), topic)
		out.add(metrics.ProducerResent, float64(s.Resent), topic)
		out.add(metrics.ProducerBuffered, float64(s.BufferedBytes), topic)
		out.most(metrics.ProducerOldest, s.OldestUnanswered.Seconds(), topic)
		if s.Dropped[producer.CauseBufferFull] == 0 { // the usual cause is there before it happens
			out.add(metrics.ProducerDropped, 0, topic, producer.CauseBufferFull)
		}
		for cause, n := range s.Dropped {
			out.add(metrics.ProducerDropped, float64(n), topic, cause)
		}
	}
	return out.all
}
