package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/almanac-events/almanac/gateway/request"
	"github.com/almanac-events/almanac/maintenance/verify"
)

const (
	// proofAge is how old a proof may be that GET answers with.
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
	known map[string]*proof // by topic, "" for all
}

// proof is a run, under way until done is closed.
type proof struct {
	began time.Time
	done  chan struct{}
	value Proof
	err   error
}

// addProofs adds verify.
func (a *API) addProofs(mux *http.ServeMux) {
	if a.cfg.Verify == nil {
		return
	}
	mux.HandleFunc("GET /v1/verify", a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) { return a.verify(r, proofAge) }))
	mux.HandleFunc("POST /v1/verify", a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) { return a.verify(r, 0) }))
}

func (a *API) verify(r *http.Request, age time.Duration) (any, error) {
	p := paramsOf(r)
	topic := p.text("topic")
	if err := p.end(); err != nil {
		return nil, err
	}
	if topic != "" { // before a place is taken for it
		if _, err := a.cfg.Registry.Topic(r.Context(), topic); err != nil {
			return nil, err
		}
	}
	run, err := a.proofOf(topic, age)
	if err != nil {
		return nil, err
	}
	select {
	case <-run.done:
		return run.value, run.err
	case <-r.Context().Done():
		return nil, request.Refuse(http.StatusGatewayTimeout, "too_slow", "verify has not ended yet, and goes on", "GET /v1/verify again in a minute: it waits for the same run")
	}
}

// proofOf returns the run that is under way, one that is younger than age, or a new one.
func (a *API) proofOf(topic string, age time.Duration) (*proof, error) {
	s := &a.proofs
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.known {
		if ended(p.done) && time.Since(p.began) > max(age, proofAge) {
			delete(s.known, name)
		}
	}
	if p := s.known[topic]; p != nil && (!ended(p.done) || p.err == nil && time.Since(p.began) < age) {
		return p, nil
	}
	if len(s.known) >= maxProofs {
		return nil, tooMany("proofs", maxProofs)
	}
	p := &proof{began: time.Now().UTC(), done: make(chan struct{})}
	s.known[topic] = p
	go func() {
		defer close(p.done)
		ctx, cancel := context.WithTimeout(context.Background(), proofWait)
		defer cancel()
		go a.whenStopping(ctx, cancel)
		rep, err := a.cfg.Verify(ctx, topic)
		if p.err = err; err == nil {
			p.value = Proof{OK: rep.OK(), At: p.began, Took: time.Since(p.began).Seconds(), Report: rep}
		}
	}()
	return p, nil
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
