package timer

import (
	"math"
	"net/http"
	"slices"
	"time"
)

// Bounds of a retry policy.
const (
	MaxAttempts = 1000
	MaxInterval = 24 * time.Hour
	// MaxDuration bounds how long attempts of a revision go on: 30 days.
	MaxDuration = 30 * 24 * time.Hour
	// Jitter is the share by which a wait differs at most, to both sides.
	Jitter = 0.2

	defaultInterval    = 30 * time.Second
	defaultMultiplier  = 2
	defaultMaxInterval = 5 * time.Minute
)

// Policy says how often a call that failed is made again.
type Policy struct {
	// Attempts include the first.
	Attempts int `json:"max_attempts"`
	// Initial is the wait after the first attempt, before jitter; 0: 30 s.
	Initial time.Duration `json:"initial_interval_ns,omitempty"`
	// Multiplier of each further wait; 0: 2.
	Multiplier float64 `json:"backoff_multiplier,omitempty"`
	// MaxInterval bounds a wait, and a Retry-After; 0: 5 min.
	MaxInterval time.Duration `json:"max_interval_ns,omitempty"`
	// MaxDuration: no attempt whose wait ends later than this after the first; 0: no such bound.
	MaxDuration time.Duration `json:"max_duration_ns,omitempty"`
	// RetryOn lists more statuses of 400 to 499 that are tried again, beside those that say so themselves:
	// 408, 425 and 429. The others are final.
	RetryOn []int `json:"retry_on,omitempty"`
}

// Validate refuses a policy with a number that makes no sense.
func (p *Policy) Validate() error {
	switch {
	case p.Attempts < 1 || p.Attempts > MaxAttempts:
		return refuse(CodeAttempts, "attempts are %d, the first included; expected 1 to %d", p.Attempts, MaxAttempts)
	case p.Initial < 0 || p.Initial > MaxInterval:
		return refuse(CodeInterval, "the initial interval is %s; expected more than 0 and at most %s", p.Initial, MaxInterval)
	case p.Multiplier != 0 && (p.Multiplier < 1 || p.Multiplier > 100 || math.IsNaN(p.Multiplier)):
		return refuse(CodeMultiplier, "the multiplier is %g; expected 1 to 100", p.Multiplier)
	case p.MaxInterval < 0 || p.MaxInterval > MaxInterval || p.MaxInterval > 0 && p.MaxInterval < p.Initial:
		return refuse(CodeInterval, "the maximum interval is %s; expected the initial one or more, and at most %s", p.MaxInterval, MaxInterval)
	case p.MaxDuration < 0 || p.MaxDuration > MaxDuration:
		return refuse(CodeDuration, "the maximum duration is %s; expected 0 to %s", p.MaxDuration, MaxDuration)
	}
	for _, s := range p.RetryOn {
		if s < 400 || s > 499 {
			return refuse(CodeRetryOn, "retry_on has %d; expected statuses from 400 to 499, the others are tried again anyway", s)
		}
	}
	return nil
}

// mayPass reports whether an answer's status says that another attempt may succeed: all but what the
// request itself is blamed for (RFC 9110, RFC 8470, RFC 6585).
func (p *Policy) mayPass(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status < 400 || status > 499 || slices.Contains(p.RetryOn, status)
}

func (p Policy) withDefaults() Policy {
	if p.Initial == 0 {
		p.Initial = defaultInterval
		if p.MaxInterval > 0 {
			p.Initial = min(p.Initial, p.MaxInterval)
		}
	}
	if p.Multiplier == 0 {
		p.Multiplier = defaultMultiplier
	}
	if p.MaxInterval == 0 {
		p.MaxInterval = max(defaultMaxInterval, p.Initial)
	}
	return p
}

// Wait returns the wait after an attempt, the first being 1, before jitter: initial · multiplier^(k−1),
// at most the maximum interval.
func (p Policy) Wait(attempt int64) time.Duration {
	p = p.withDefaults()
	w := float64(p.Initial) * math.Pow(p.Multiplier, float64(attempt-1))
	if w >= float64(p.MaxInterval) || math.IsInf(w, 0) {
		return p.MaxInterval
	}
	return time.Duration(w)
}

// Next returns when the attempt after a failed one is due (unix ns), or false if there is none.
// Times are unix ns; retryAfter is what the answer asked for, 0 for nothing; u is drawn evenly from
// [0, 1) and gives the jitter.
func (p Policy) Next(attempt, first, now int64, retryAfter time.Duration, u float64) (due int64, again bool) {
	if attempt >= int64(p.Attempts) {
		return 0, false
	}
	p = p.withDefaults()
	wait := time.Duration(float64(p.Wait(attempt)) * (1 - Jitter + 2*Jitter*u))
	wait = max(wait, min(retryAfter, p.MaxInterval))
	due = now + int64(wait)
	if p.MaxDuration > 0 && due > first+int64(p.MaxDuration) {
		return 0, false
	}
	return due, true
}
