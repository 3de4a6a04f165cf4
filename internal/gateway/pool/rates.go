package pool

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/access"
)

// RateError is a request that its token's rate has no room for. Nothing was taken.
type RateError struct {
	Name string        // of the token
	Wait time.Duration // after which there is room
}

func (e *RateError) Error() string {
	return fmt.Sprintf("token %q has used its rate: send the request again in %s; nothing of it was taken", e.Name, e.Wait.Round(time.Second/10))
}

// withinRate counts the request by its token's rates, over all topics.
func (r *Request) withinRate() error { return r.p.WithinRate(r.token, r.Len(), r.bytes) }

// WithinRate counts what a token sends otherwise than by a Request, such as a document, or returns a *RateError.
func (p *Pool) WithinRate(t *access.Token, events, bytes int) error {
	if t == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.rates.Take(t, events, bytes, time.Now()); wait > 0 {
		return &RateError{t.Name, wait}
	}
	return nil
}

// Charge counts what WithinRate could not know before.
func (p *Pool) Charge(t *access.Token, events, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rates.Charge(t, events, bytes, time.Now())
}
