package families

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// Proofs remembers what the scheduled verify found last. Its methods are hooks of verify.Scheduled.
type Proofs struct {
	topics *metrics.Names

	mu       sync.Mutex
	owned    bool
	every    time.Duration
	at       time.Time
	took     time.Duration
	last     *verify.Report
	failures float64
}

// NewProofs takes the numbers of verify.
func NewProofs(r *metrics.Registry) *Proofs {
	p := &Proofs{topics: r.Topics()}
	r.Read(metrics.Source{Name: "verify", Read: func(context.Context) ([]metrics.Sample, error) { return p.samples(), nil }})
	return p
}

// Began says that this process runs verify from now on, so often.
func (p *Proofs) Began(every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owned, p.every = true, every
}

// Left says that another process does.
func (p *Proofs) Left() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owned, p.last = false, nil
}

// Ended notes a run.
func (p *Proofs) Ended(rep *verify.Report, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failures++
		return
	}
	p.at, p.took, p.last = time.Now(), took, rep
}

// samples are what the last run found. What another process runs is said there.
func (p *Proofs) samples() []metrics.Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.owned {
		return nil
	}
	var out sums
	out.add(metrics.VerifyEvery, p.every.Seconds())
	out.add(metrics.VerifyFailures, p.failures)
	if !p.at.IsZero() { // a process that took the runs over has proven nothing by that
		out.add(metrics.VerifyTime, unix(p.at))
	}
	if p.last == nil {
		return out.all
	}
	out.add(metrics.VerifyDuration, p.took.Seconds())
	out.add(metrics.VerifyProblems, float64(len(p.last.Problems)))
	for i := range p.last.Topics {
		t := &p.last.Topics[i]
		topic := p.topics.Of(t.Topic)
		out.add(metrics.VerifyMissing, float64(t.Missing), topic)
		out.add(metrics.VerifyDoubled, float64(t.Doubled), topic)
	}
	return out.all
}
