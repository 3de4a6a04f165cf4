package metrics

import (
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Config of a registry.
type Config struct {
	// Version, Commit and Go are what the binary is made of.
	Version, Commit, Go string
	// OnError hears why a source cannot be read. It may be called at every scrape.
	OnError func(source string, err error)
}

// Registry has every number of a process.
type Registry struct {
	cfg    Config
	known  *prometheus.Registry // what parts count into
	topics Names

	mu      sync.Mutex
	sources []Source
}

// New returns the registry of a process, with the numbers of the process and of Go.
func New(cfg Config) *Registry {
	if cfg.OnError == nil {
		cfg.OnError = func(string, error) {}
	}
	r := &Registry{cfg: cfg, known: prometheus.NewRegistry()}
	r.known.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.Gauge(BuildInfo).WithLabelValues(cfg.Version, cfg.Commit, cfg.Go).Set(1)
	return r
}

// Counter returns what counts a metric. Each is taken once in a process.
func (r *Registry) Counter(m *Metric) *prometheus.CounterVec {
	m.must(Counter)
	return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels))
}

// Gauge returns what sets a metric.
func (r *Registry) Gauge(m *Metric) *prometheus.GaugeVec {
	m.must(Gauge)
	return register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels))
}

// Histogram returns what counts the values of a metric by size.
func (r *Registry) Histogram(m *Metric) *prometheus.HistogramVec {
	m.must(Histogram)
	return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}, m.Labels))
}

// Read adds sources, which are read at each scrape from now on.
func (r *Registry) Read(sources ...Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources, sources...)
}

// Topics bounds the names of topics in labels, for all parts of the process alike.
func (r *Registry) Topics() *Names { return &r.topics }

func register[T prometheus.Collector](r *Registry, c T) T {
	r.known.MustRegister(c)
	return c
}

// must panics where a metric is not declared, or is of another kind: a fault of the program, which every start meets.
func (m *Metric) must(kind Kind) {
	if m.Kind != kind || !slices.Contains(declared, m) {
		panic(fmt.Sprintf("%s is not declared as a %s", m.Name, kind))
	}
}
