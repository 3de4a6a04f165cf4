package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/almanac-events/almanac/internal/fanout"
)

// Source reads what some metrics are now.
type Source struct {
	// Name of the source where it fails.
	Name string
	Read func(ctx context.Context) ([]Sample, error)
}

// scrapeWait is how long a scrape may take: who looks while a server is away is to have what there is at once. A read
// that takes longer goes on, and the next scrape has its result. docs/operations.md promises an answer within 2 s; the rest
// of them is for writing it.
const scrapeWait = 1700 * time.Millisecond

// Handler serves all that is known, and says which sources could not be read.
func (r *Registry) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), scrapeWait)
		defer cancel()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		promhttp.HandlerFor(r.read(ctx), promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError, ErrorLog: errorLog{r},
		}).ServeHTTP(w, req.WithContext(ctx))
	})
}

// Gather returns what Handler would serve now, for package export. Beside an error it returns what could be gathered.
func (r *Registry) Gather(ctx context.Context) ([]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeWait)
	defer cancel()
	return r.read(ctx).Gather()
}

// read reads all sources, and returns them with what is counted.
func (r *Registry) read(ctx context.Context) prometheus.Gatherer {
	now := prometheus.NewRegistry()
	if err := now.Register(samples(r.readAll(ctx))); err != nil {
		r.cfg.OnError("metrics", err)
	}
	return prometheus.Gatherers{r.known, now}
}

// errorLog tells of samples that are left out: one that is there twice, or has too many labels.
type errorLog struct{ r *Registry }

func (l errorLog) Println(v ...any) { l.r.cfg.OnError("metrics", fmt.Errorf("%s", fmt.Sprint(v...))) }

// readAll reads sources at once: one that hangs does not take the time of the others.
func (r *Registry) readAll(ctx context.Context) (all []Sample) {
	r.mu.Lock()
	sources := r.sources
	r.mu.Unlock()
	parts, errs := make([][]Sample, len(sources)), make([]error, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		wg.Go(func() {
			errs[i] = fanout.Call(func() (err error) {
				parts[i], err = s.Read(ctx)
				return err
			})
		})
	}
	wg.Wait()
	for i, s := range sources {
		failed := 0.0
		if errs[i] != nil && !errors.Is(errs[i], errUnderWay) {
			failed = 1
			r.cfg.OnError(s.Name, errs[i])
		}
		if old := (*oldError)(nil); errs[i] == nil || errors.As(errs[i], &old) {
			all = append(all, parts[i]...)
			all = append(all, SourceAge.Is(old.age(time.Now()).Seconds(), s.Name))
		}
		all = append(all, SourceFailed.Is(failed, s.Name))
	}
	return all
}

// samples are what one scrape read.
type samples []Sample

// Describe says nothing ahead: which samples there are is known by reading.
func (samples) Describe(chan<- *prometheus.Desc) {}

// Collect gives the samples as the client library has them.
func (all samples) Collect(to chan<- prometheus.Metric) {
	for _, s := range all {
		kind := prometheus.GaugeValue
		if s.Of.Kind == Counter {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(s.Of.Name, s.Of.Help, s.Of.Labels, nil)
		m, err := prometheus.NewConstMetric(desc, kind, s.Value, s.Labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(desc, err)
		}
		to <- m
	}
}
