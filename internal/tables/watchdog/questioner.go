package watchdog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// A server, or the way to it, can vanish without a word: what is sent is lost and
// nothing answers, on connections that stay open. TCP does not report it where
// something in between keeps acknowledging. So the requests of a DB that are silent are
// asked about over a new connection: does the server run them? Where it answers twice
// that it does not know one, that request never arrived or its answer is lost. It ends
// with ErrVanished, and so do the idle connections of its time. Of an insert the head
// tells what became of it; one that arrives late meets its successor's query id, token
// and assertion.
//
// A slow server is silent too, and questions must not make it slower. So there is one
// question at a time for all silent requests of a DB, and none while one is unanswered.
// After a question without an answer the next waits twice as long, and for twice as
// long. No answer, or a refusal, proves nothing: the request waits for its own timeout.

const (
	// minSilence is far above what a server takes to begin a query. When a new
	// connection fell silent too, which may be only a slow way, the next gets twice as
	// long, up to maxSilence.
	minSilence = 1500 * time.Millisecond
	maxSilence = 24 * time.Second
	// formRate is what a server takes at least of a form, in bytes a second. It reads a form whole, with the events in
	// it, before it notes that it runs the statement: a fiftieth of what one processor reads, some 200 MB/s.
	formRate = 4 << 20
	// askEvery is the pause before a question, AskTime bounds one. Both double while
	// there is no answer, up to maxAskEvery and maxAskTime: a silent server gets two
	// questions a minute from a process.
	askEvery    = 500 * time.Millisecond
	maxAskEvery = 30 * time.Second
	AskTime     = time.Second
	maxAskTime  = 10 * time.Second
)

// Questioner asks a server about the requests that are silent.
type Questioner struct {
	// Ask returns which of the ids the server runs.
	Ask func(ctx context.Context, ids []string) (map[string]bool, error)
	// Vanished is called after requests were ended.
	Vanished func()
	// Closed ends the questions when it is closed.
	Closed chan struct{}

	silence atomic.Int64 // ns; 0: minSilence

	mu       sync.Mutex
	requests map[*request]struct{}
	running  bool
}

func (q *Questioner) add(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.requests == nil {
		q.requests = map[*request]struct{}{}
	}
	q.requests[r] = struct{}{}
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *Questioner) remove(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.requests, r)
}

// minSilent returns how long a request may be silent before its server is asked.
func (q *Questioner) minSilent() time.Duration {
	return max(minSilence, time.Duration(q.silence.Load()))
}

// silent returns the requests to ask about. alive is false when no request is under way
// at all: then run ends, and the next request starts it again.
func (q *Questioner) silent() (some []*request, alive bool) {
	least := q.minSilent()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) == 0 {
		q.running = false
		return nil, false
	}
	for r := range q.requests {
		if r.silent() >= least+r.reading {
			some = append(some, r)
		} else {
			r.unknown = 0
		}
	}
	return some, true
}

// run asks while any request is under way.
func (q *Questioner) run() {
	pause, limit := askEvery, AskTime
	failed := backoff.Backoff{Least: 2 * askEvery, Most: maxAskEvery}
	for {
		select {
		case <-time.After(pause):
		case <-q.Closed:
			return
		}
		some, alive := q.silent()
		if !alive {
			return
		}
		if len(some) == 0 {
			pause = askEvery
			continue
		}
		ids := make([]string, len(some))
		for i, r := range some {
			ids[i] = r.id
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		began := time.Now()
		runs, err := q.Ask(ctx, ids)
		cancel()
		if err != nil {
			pause, limit = failed.Next(), min(2*limit, maxAskTime)
			continue
		}
		// A server that took long for this answer may take as long for the next.
		failed.Reset()
		pause, limit = askEvery, min(max(AskTime, 2*time.Since(began)), maxAskTime)
		q.answered(some, runs)
	}
}

// answered ends the requests of which the server denied twice that it runs them.
func (q *Questioner) answered(some []*request, runs map[string]bool) {
	var lost []*request
	for _, r := range some {
		if runs[r.id] {
			r.unknown = 0
			continue
		}
		if r.unknown++; r.unknown >= 2 && !r.ended.Load() {
			lost = append(lost, r)
		}
	}
	for _, r := range lost {
		if !r.reused.Load() {
			q.silence.Store(int64(min(2*q.minSilent(), maxSilence)))
		}
		r.cancel(fmt.Errorf("%w: silent for %s on an open connection", ErrVanished, r.silent().Round(100*time.Millisecond)))
	}
	if len(lost) > 0 {
		q.Vanished()
	}
}

// request is one that waits for its answer.
type request struct {
	id      string
	cancel  context.CancelCauseFunc
	reading time.Duration // how long its server may read its form, see formRate
	last    atomic.Int64  // unix ns when it last moved; 0: it has no connection yet
	reused  atomic.Bool   // its connection carried another before
	ended   atomic.Bool
	unknown int // answers since it moved that the server does not run it; the Questioner's
}

func (r *request) moved() { r.last.Store(time.Now().UnixNano()) }

// silent returns for how long nothing of the request was sent.
func (r *request) silent() time.Duration {
	last := r.last.Load()
	if last == 0 {
		return 0
	}
	return time.Since(time.Unix(0, last))
}
