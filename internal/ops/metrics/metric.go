package metrics

import "slices"

// Kind is what a number does.
type Kind string

// Kinds.
const (
	Gauge     Kind = "gauge"     // goes up and down
	Counter   Kind = "counter"   // only goes up while its process lives
	Histogram Kind = "histogram" // counts values by size
)

// Metric is a number that a process says.
type Metric struct {
	Name string
	// Help is one sentence: the scrape has it, and docs/metrics.md.
	Help   string
	Kind   Kind
	Labels []string
	// Now says that the number is worth nothing when it is of a while ago: it is missing where it cannot be read, and never as it was.
	Now bool
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
}

// Sample is a number as a source read it.
type Sample struct {
	Of     *Metric
	Value  float64
	Labels []string // values, in the order of Of.Labels
}

// Is returns a sample of a metric.
func (m *Metric) Is(value float64, labels ...string) Sample { return Sample{m, value, labels} }

// declared are the metrics in the order of their declarations.
var declared []*Metric

func declare(kind Kind, name, help string, labels []string, buckets ...float64) *Metric {
	m := &Metric{Name: name, Help: help, Kind: kind, Labels: labels, Buckets: buckets}
	declared = append(declared, m)
	return m
}

func gauge(name, help string, labels ...string) *Metric { return declare(Gauge, name, help, labels) }

// now is a gauge that is worth nothing when it is of a while ago.
func now(name, help string, labels ...string) *Metric {
	m := gauge(name, help, labels...)
	m.Now = true
	return m
}

func counter(name, help string, labels ...string) *Metric {
	return declare(Counter, name, help, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *Metric {
	return declare(Histogram, name, help, labels, buckets...)
}

// All returns every metric there is.
func All() []*Metric { return slices.Clone(declared) }
