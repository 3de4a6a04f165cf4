package api

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/jobs"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
)

const (
	// proofTold is how often a job looks how far its proof is.
	proofTold = time.Second
	// maxProvenProblems bounds the problems that a job names, each of which may be long: it is one entry of the registry.
	maxProvenProblems = 20
)

// proofRequest is what a job proves; the empty topic is all.
type proofRequest struct {
	Topic string `json:"topic,omitempty"`
}

// Proven is what a job has of a proof. GET /v1/verify of the gateway that made it has the report.
type Proven struct {
	OK   bool      `json:"ok"`
	At   time.Time `json:"at"`
	Took float64   `json:"took_seconds"`
	verify.Totals
	// Problems are the first of Faults.
	Problems []string `json:"problems"`
	Faults   int      `json:"faults"`
}

func provenOf(p *Proof) *Proven {
	return &Proven{
		OK: p.OK, At: p.At, Took: p.Took, Totals: p.Report.Totals,
		Problems: filled(p.Report.Problems[:min(len(p.Report.Problems), maxProvenProblems)]), Faults: len(p.Report.Problems),
	}
}

// proofWorker waits for the proof that all who ask share, and makes it where there is none. Another try is another proof.
type proofWorker struct{ a *API }

// Work implements jobs.Worker. A job that is cancelled waits no longer; the proof goes on for others.
func (w proofWorker) Work(ctx context.Context, t *jobs.Task) (any, error) {
	var q proofRequest
	if err := t.Request(&q); err != nil {
		return nil, err
	}
	run, began := w.a.proofs.runOf(q.Topic, time.Now().UTC())
	if run == nil {
		return nil, busy(fmt.Errorf("%d proofs are under way, the most at once", maxProofs))
	}
	if began {
		go w.a.prove(run, q.Topic) //nolint:gosec // it goes on for those who wait for it too, where the job is cancelled
	}
	tick := time.NewTicker(proofTold)
	defer tick.Stop()
	for {
		select {
		case <-run.done:
			if run.err == nil {
				return provenOf(&run.value), nil
			}
			select {
			case <-w.a.cfg.Stopping: // the proof ended since this gateway does, and the job goes back to the queue with its context
				<-ctx.Done()
				return nil, ctx.Err()
			default:
				return nil, run.err
			}
		case <-tick.C:
			if of := run.of.Load(); of > 0 {
				t.Progress(fmt.Sprintf("%d of %d shards", run.shards.Load(), of))
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Final implements jobs.Worker.
func (proofWorker) Final(err error) bool { return final(err) }
