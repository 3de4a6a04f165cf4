package watchdog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// A server that is away is found out once for all of a DB, not by each request:
//
//	closed ──a request got no answer──▶ suspect ──probe without answer──▶ open
//	   ▲                                   │                               │
//	   └───────────probe answered──────────┴──────probe answered───────────┘
//
// While it is suspect, the next request starts a probe and waits for its result. While it is open,
// requests fail at once with ErrUnreachable, and Wait waits. There is one probe at a
// time, and none unless a request asks.

// Breaker is the state of the way to one server.
type Breaker struct {
	// Probe asks the server whether it is there.
	Probe func(ctx context.Context) error

	mu      sync.Mutex
	hooks   Hooks
	suspect error // why the server may be away; nil: no reason
	down    *outage
	probing chan struct{} // closed when the probe under way has ended; nil: none is
}

// outage is a time without answers.
type outage struct {
	since time.Time
	cause error
	pause backoff.Backoff
	next  time.Time // when to probe again
}

// Hooks report what happens to the way to ClickHouse; each may be nil. They must not
// block.
type Hooks struct {
	// Unreachable: the server does not answer, as a probe found too. Called once an
	// outage.
	Unreachable func(cause error)
	// Reachable: the server answers again. Called once an outage.
	Reachable func(away time.Duration)
	// Vanished: the server answered, and did not run what it was sent over connections that stand. Those requests ended, and what only reads is
	// sent once more. Called once for all that a question found.
	Vanished func()
}

const (
	// probeTime bounds one probe: /ping takes a server at a tenth of its speed well
	// below a second.
	probeTime = 5 * time.Second
	// The pause between two probes begins at minProbePause and doubles up to
	// MaxProbePause, which bounds how much later than the server its clients are back.
	minProbePause = 100 * time.Millisecond
	MaxProbePause = 2 * time.Second
)

// Failed notes that a request got no answer.
func (b *Breaker) Failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.suspect == nil {
		b.suspect = err
	}
}

// Check returns nil when a request may be sent, ErrUnreachable when the server is away,
// or ctx's error. It waits for a probe that is under way.
func (b *Breaker) Check(ctx context.Context) error {
	for {
		b.mu.Lock()
		if b.suspect == nil && b.down == nil {
			b.mu.Unlock()
			return nil
		}
		if b.down != nil && b.probing == nil && time.Now().Before(b.down.next) {
			err := b.down.err()
			b.mu.Unlock()
			return err
		}
		if b.probing == nil {
			b.probing = make(chan struct{})
			go b.look(b.probing) //nolint:gosec // it ends after probeTime, and others wait for it when ctx ends
		}
		probing := b.probing
		b.mu.Unlock()
		select {
		case <-probing:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look probes once and notes the result.
func (b *Breaker) look(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	err := b.Probe(ctx)
	cancel()
	var report func()
	b.mu.Lock()
	hooks := b.hooks
	switch now := time.Now(); {
	case err == nil:
		if d := b.down; d != nil && hooks.Reachable != nil {
			report = func() { hooks.Reachable(now.Sub(d.since)) }
		}
		b.suspect, b.down = nil, nil
	case b.down == nil:
		b.down = &outage{since: now, cause: b.suspect, pause: backoff.Backoff{Least: minProbePause, Most: MaxProbePause}}
		if hooks.Unreachable != nil {
			report = func() { hooks.Unreachable(err) }
		}
	}
	if b.down != nil {
		b.down.next = time.Now().Add(b.down.pause.Next())
	}
	b.probing = nil
	b.mu.Unlock()
	if report != nil {
		report()
	}
	close(done)
}

func (o *outage) err() error {
	return &Unanswered{fmt.Errorf("since %s: %w", o.since.UTC().Format(time.TimeOnly), o.cause)}
}

// Wait returns once the server answers: with nil, and whether it was away, or with
// ctx's error.
func (b *Breaker) Wait(ctx context.Context) (away bool, err error) {
	for {
		err := b.Check(ctx)
		if err == nil || !errors.Is(err, ErrUnreachable) {
			return away, err
		}
		away = true
		b.mu.Lock()
		pause := minProbePause
		if b.down != nil {
			pause = max(time.Until(b.down.next), 0)
		}
		b.mu.Unlock()
		if err := backoff.Sleep(ctx, pause); err != nil {
			return away, err
		}
	}
}

// Vanished tells of requests that ended since their server vanished.
func (b *Breaker) Vanished() {
	b.mu.Lock()
	told := b.hooks.Vanished
	b.mu.Unlock()
	if told != nil {
		told()
	}
}

// SetHooks sets what is called when the server goes away and comes back.
func (b *Breaker) SetHooks(h Hooks) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hooks = h
}
