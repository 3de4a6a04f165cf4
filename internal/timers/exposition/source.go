package exposition

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
)

// Source reads what some metrics are now.
type Source struct {
	// Name of the source where it fails.
	Name string
	Read func(ctx context.Context) (Group, error)
}

// Of is the source of a dispatcher's metrics.
func Of(d *dispatch.Dispatcher) Source {
	return Paced("dispatcher", func(ctx context.Context) (Group, error) {
		waiting, err := d.Waiting(ctx)
		if err != nil {
			return nil, err
		}
		return Dispatcher(waiting, d.Stats()), nil
	}, time.Second)
}

const (
	// pause is how many times as long as a read took its source is left alone: reads of a large front take a
	// twentieth of a core, however often they are asked for.
	pause = 20
	// readWait is how long a read may take. One of 500,000 timers took 7 s.
	readWait = time.Minute
	// maxWait is how long a caller waits for a read while there is an older result: most reads end before.
	maxWait = time.Second
)

// paced is a source that is read now and then.
type paced struct {
	read  func(ctx context.Context) (Group, error)
	apart time.Duration

	mu      sync.Mutex
	reading chan struct{} // closed when the read under way ends; nil: none is
	done    bool          // a read has ended, with last and err
	last    Group
	err     error
	until   time.Time // no other read begins before
}

// Paced returns a source whose reads begin at least so far apart, and one at a time. In between, and where a read
// takes more than a moment, it returns what it read last. After a failed read, that is the failure, and the next
// read may begin so far after its end. A read goes on when its caller gives up, so that the next one finds its result.
func Paced(name string, read func(ctx context.Context) (Group, error), apart time.Duration) Source {
	p := &paced{read: read, apart: apart}
	return Source{name, p.get}
}

func (p *paced) get(ctx context.Context) (Group, error) {
	p.mu.Lock()
	if p.reading == nil && time.Now().Before(p.until) {
		defer p.mu.Unlock()
		return p.last, p.err
	}
	if p.reading == nil {
		p.reading = make(chan struct{})
		go p.again(context.WithoutCancel(ctx))
	}
	reading := p.reading
	var enough <-chan time.Time
	if p.done {
		enough = time.After(maxWait)
	}
	p.mu.Unlock()
	select {
	case <-reading:
	case <-enough:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.err
}

func (p *paced) again(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	began := time.Now()
	var last Group
	err := fanout.Call(func() (err error) { // a scrape that fails must not end the process, nor hold up the next
		last, err = p.read(ctx)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.last, p.err = true, last, err
	if p.until = began.Add(max(p.apart, pause*time.Since(began))); err != nil {
		p.until = time.Now().Add(p.apart)
	}
	close(p.reading)
	p.reading = nil
}

// scrapeWait is how long a scrape may take: Prometheus gives up after 10 s by default, and is to have what there is.
const scrapeWait = 8 * time.Second

// ContentType is that of the text format.
var ContentType = string(expfmt.NewFormat(expfmt.TypeTextPlain))

// Handler serves the metrics of the sources that can be read, and which could not. Where none can, it fails as fail
// says.
func Handler(fail func(http.ResponseWriter, *http.Request, error), sources ...Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), scrapeWait)
		defer cancel()
		all, err := readAll(ctx, sources)
		var text bytes.Buffer
		if err == nil {
			err = Write(&text, all)
		}
		if err != nil {
			fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", ContentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(text.Bytes())
	})
}

// readAll reads sources at once: one that hangs does not take the time of the others.
func readAll(ctx context.Context, sources []Source) (Group, error) {
	parts, errs := make([]Group, len(sources)), make([]error, len(sources))
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
	failed := gauge("almanac_metrics_source_failed", "1 where this source could not be read in time: its metrics are missing.")
	var all Group
	good := false
	for i, s := range sources {
		good = good || errs[i] == nil
		failed.add(map[bool]float64{true: 1}[errs[i] != nil], labels("source", s.Name))
		all = append(all, parts[i]...)
	}
	if !good {
		return nil, errors.Join(errs...)
	}
	return append(all, groups(failed)...), nil
}
