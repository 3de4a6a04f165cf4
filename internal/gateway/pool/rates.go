package pool

import (
	"fmt"
	"time"
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
func (r *Request) withinRate() error {
	if r.token == nil {
		return nil
	}
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	if wait := r.p.rates.Take(r.token, r.Len(), r.bytes, time.Now()); wait > 0 {
		return &RateError{r.token.Name, wait}
	}
	return nil
}
