package families

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/router"
)

// Router counts what a router does. Its methods are the router's hooks, which are called with each batch.
type Router struct {
	topics                                             *metrics.Names
	events, messages, bytes, dead, repeated, rotations *prometheus.CounterVec
	faults                                             *prometheus.CounterVec
	last                                               *prometheus.GaugeVec
}

// NewRouter takes the numbers of a router.
func NewRouter(r *metrics.Registry) *Router {
	return &Router{
		topics: r.Topics(), events: r.Counter(metrics.RouterEvents), messages: r.Counter(metrics.RouterMessages), bytes: r.Counter(metrics.RouterBytes),
		dead: r.Counter(metrics.RouterDead), repeated: r.Counter(metrics.RouterRepeated), rotations: r.Counter(metrics.RouterRotations),
		faults: r.Counter(metrics.RouterFaults), last: r.Gauge(metrics.RouterLast),
	}
}

// Routed counts a batch.
func (c *Router) Routed(topic, _ string, b router.Batch) {
	topic = c.topics.Of(topic)
	c.events.WithLabelValues(topic).Add(float64(b.Events))
	c.messages.WithLabelValues(topic).Add(float64(b.Messages))
	c.bytes.WithLabelValues(topic).Add(float64(b.Bytes))
	c.repeated.WithLabelValues(topic).Add(float64(b.Repeated))
	c.last.WithLabelValues(topic).Set(unix(time.Now()))
	c.faults.WithLabelValues(topic) // 0 is a number too
}

// Dead counts dead letters.
func (c *Router) Dead(topic, reason string, events int, _ error) {
	c.dead.WithLabelValues(c.topics.Of(topic), reason).Add(float64(events))
}

// Rotated counts a shard that was full.
func (c *Router) Rotated(s registry.Shard, reason string) {
	c.rotations.WithLabelValues(c.topics.Of(s.Topic), reason).Inc()
}

// Fault counts a run that ended.
func (c *Router) Fault(topic, _ string, _ error) {
	c.faults.WithLabelValues(c.topics.Of(topic)).Inc()
}

// unix is a time as a number of Prometheus.
func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
