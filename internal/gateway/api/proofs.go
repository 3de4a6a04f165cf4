package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/operations"
)

const (
	// proofAge is how far apart the runs of one topic begin, however many ask for one.
	proofAge = time.Minute
	// proofWait bounds a run of verify, which no request waits for to its end.
	proofWait = 15 * time.Minute
	// maxProofs bounds the topics whose proof is kept.
	maxProofs = 64
)

// Proof is what verify found, and when.
type Proof struct {
	OK bool `json:"ok"`
	// At is when the run began.
	At     time.Time      `json:"at"`
	Took   float64        `json:"took_seconds"`
	Report *verify.Report `json:"report"`
}

// proofs runs verify once for all who ask.
type proofs struct {
	mu    sync.Mutex
	known map[string]*proven // by topic, "" for all
}

// proven is what is known of a topic: its last run, and the last one that ended with a proof.
type proven struct{ run, last *proof }

// proof is a run, under way until done is closed.
type proof struct {
	began time.Time
	done  chan struct{}
	value Proof
	err   error
	// shards are compared, of of.
	shards, of atomic.Int64
}

// addProofs adds verify.
func (a *API) addProofs(on routes) {
	if a.cfg.Verify == nil {
		return
	}
	on.serve(&operations.Proof, a.read(a.lastProof))
	on.serve(&operations.Verify, a.read(a.verify))
}

// proofTopic is the topic that a request names; "" for all.
func (a *API) proofTopic(p *params, r *http.Request) (string, error) {
	topic := p.text("topic")
	if err := p.end(); err != nil {
		return "", err
	}
	if topic != "" { // before a place is taken for it
		if _, err := a.cfg.Registry.Topic(r.Context(), topic); err != nil {
			return "", err
		}
	}
	return topic, nil
}

// lastProof answers with the last proof. It begins no run.
func (a *API) lastProof(_ http.ResponseWriter, r *http.Request) (any, error) {
	topic, err := a.proofTopic(paramsOf(r), r)
	if err != nil {
		return nil, err
	}
	last, running := a.proofs.lastOf(topic)
	if last != nil {
		return last.value, nil
	}
	message := "this gateway has not made a proof since it began"
	if running {
		message = "the first proof since this gateway began is under way"
	}
	return nil, request.Refuse(http.StatusNotFound, "no_proof", message, "POST to the same address makes one, or waits for the one that is under way")
}

// verify answers with a proof that is a minute old at most, and makes one where there is none; or with the job that does.
func (a *API) verify(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	job := p.yes("job")
	topic, err := a.proofTopic(p, r)
	if err != nil {
		return nil, err
	}
	if job {
		all, err := a.jobs.List(r.Context())
		if err != nil {
			return nil, err
		}
		for _, j := range all { // who asks again waits for the same proof
			if j.Kind == kindVerify && j.Topic == topic && !j.State.Ended() && !j.Cancel {
				return status{http.StatusAccepted, j}, nil
			}
		}
		return a.submit(r.Context(), kindVerify, topic, &proofRequest{topic})
	}
	run, began := a.proofs.runOf(topic, time.Now().UTC())
	if run == nil {
		return nil, busy(fmt.Errorf("%d proofs are under way", maxProofs))
	}
	if began {
		go a.prove(run, topic) //nolint:gosec // it goes on for those who ask again when this client is gone
	}
	select {
	case <-run.done:
		return run.value, run.err
	case <-r.Context().Done():
		return nil, request.Refuse(http.StatusGatewayTimeout, "too_slow", "verify has not ended yet, and goes on", "POST again: it waits for the same run. GET answers with the proof when there is one")
	}
}

// lastOf returns the last run of a topic that ended with a proof; nil for none.
func (s *proofs) lastOf(topic string) (last *proof, running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[topic]
	if k == nil {
		return nil, false
	}
	k.advance()
	return k.last, !ended(k.run.done)
}

// advance makes a run that ended with a proof the last one.
func (k *proven) advance() {
	if ended(k.run.done) && k.run.err == nil {
		k.last = k.run
	}
}

// runOf returns the run that is under way, one that ended well and is younger than proofAge, or a new
// one that the caller is to begin; nil where as many are under way as may be.
func (s *proofs) runOf(topic string, now time.Time) (run *proof, begin bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[topic]
	if k != nil {
		k.advance()
		if !ended(k.run.done) || k.run == k.last && now.Sub(k.run.began) < proofAge {
			return k.run, false
		}
	} else {
		if !s.makeSpace() {
			return nil, false
		}
		k = &proven{}
		s.known[topic] = k
	}
	k.run = &proof{began: now, done: make(chan struct{})}
	return k.run, true
}

// makeSpace forgets the oldest proof where as many are kept as may be, and reports whether there is room.
func (s *proofs) makeSpace() bool {
	if len(s.known) < maxProofs {
		return true
	}
	oldest := ""
	var at time.Time
	for topic, k := range s.known {
		if ended(k.run.done) && (at.IsZero() || k.run.began.Before(at)) {
			oldest, at = topic, k.run.began
		}
	}
	delete(s.known, oldest)
	return !at.IsZero()
}

// prove carries out a run.
func (a *API) prove(p *proof, topic string) {
	defer close(p.done)
	ctx, cancel := context.WithTimeout(context.Background(), proofWait)
	defer cancel()
	go a.whenStopping(ctx, cancel)
	var rep *verify.Report
	p.err = fanout.Call(func() (err error) {
		rep, err = a.cfg.Verify(ctx, topic, func(shards, of int) {
			p.of.Store(int64(of))
			p.shards.Store(int64(shards))
		})
		return err
	})
	if p.err == nil {
		p.value = Proof{OK: rep.OK(), At: p.began, Took: time.Since(p.began).Seconds(), Report: rep}
	}
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
