package families

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/schemas"
)

// Sinks counts what a sink does. Its methods are the sink's hooks, which are called with each insert.
type Sinks struct {
	topics                          *metrics.Names
	events, inserts, closed, faults *prometheus.CounterVec
	rows, took                      prometheus.Observer
	last                            *prometheus.GaugeVec
}

// NewSinks takes the numbers of a sink.
func NewSinks(r *metrics.Registry) *Sinks {
	return &Sinks{
		topics: r.Topics(), events: r.Counter(metrics.SinkEvents), inserts: r.Counter(metrics.SinkInserts), closed: r.Counter(metrics.SinkClosed),
		faults: r.Counter(metrics.SinkFaults), rows: r.Histogram(metrics.SinkRows).WithLabelValues(),
		took: r.Histogram(metrics.SinkDuration).WithLabelValues(), last: r.Gauge(metrics.SinkLast),
	}
}

// Stored counts an insert.
func (c *Sinks) Stored(ref schemas.ShardRef, rows, _ uint64, took time.Duration) {
	topic := c.topics.Of(ref.Topic)
	c.events.WithLabelValues(topic).Add(float64(rows))
	c.inserts.WithLabelValues(topic, "stored").Inc()
	c.rows.Observe(float64(rows))
	c.took.Observe(took.Seconds())
	c.last.WithLabelValues(topic).Set(unix(time.Now()))
	c.faults.WithLabelValues(topic) // 0 is a number too
}

// Burnt counts an insert that stored nothing.
func (c *Sinks) Burnt(ref schemas.ShardRef, _ uint64, _ int) {
	c.inserts.WithLabelValues(c.topics.Of(ref.Topic), "consumed").Inc()
}

// Failed counts an insert that was not answered OK.
func (c *Sinks) Failed(ref schemas.ShardRef, _ error) {
	c.inserts.WithLabelValues(c.topics.Of(ref.Topic), "failed").Inc()
}

// Closed counts a shard that is stored whole.
func (c *Sinks) Closed(ref schemas.ShardRef, _ uint64) {
	c.closed.WithLabelValues(c.topics.Of(ref.Topic)).Inc()
}

// Fault counts work that is tried again.
func (c *Sinks) Fault(ref schemas.ShardRef, _ error) {
	topic := ref.Topic
	if topic != "" {
		topic = c.topics.Of(topic)
	}
	c.faults.WithLabelValues(topic).Inc()
}
