package access

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is sent and when, no more is taken in any span than the rate times the span, one second's worth and one request; and who waits
// as long as it is told is taken.
func TestRates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r Rates
		token := &Token{Name: "a", Rate: Rate{Events: float64(rapid.IntRange(0, 50).Draw(t, "events")), Bytes: float64(rapid.IntRange(0, 5000).Draw(t, "bytes"))}}
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		now, events, bytes := begin, 0, 0
		for range rapid.IntRange(1, 100).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "pause")) * time.Millisecond)
			n, size := rapid.IntRange(0, 100).Draw(t, "n"), rapid.IntRange(0, 3000).Draw(t, "size")
			wait := r.Take(token, n, size, now)
			if wait > 0 {
				now = now.Add(wait)
				if again := r.Take(token, n, size, now); again > 0 {
					t.Fatalf("after %s it is told to wait %s more", wait, again)
				}
			}
			if span := now.Sub(begin).Seconds() + 1.001; token.Rate.Events > 0 && float64(events) > token.Rate.Events*span || token.Rate.Bytes > 0 && float64(bytes) > token.Rate.Bytes*span {
				if wait == 0 {
					t.Fatalf("%d events, %d bytes in %s were taken, and one more request", events, bytes, now.Sub(begin))
				}
			}
			events, bytes = events+n, bytes+size
		}
	})
}

// Tokens do not use each other's rate, one without a rate is not counted, a changed rate holds, and what is kept has a bound.
func TestRatesOfTokens(t *testing.T) {
	t.Parallel()
	var r Rates
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a, b := &Token{Name: "a", Rate: Rate{Events: 10}}, &Token{Name: "b", Rate: Rate{Events: 10}}
	if r.Take(a, 1000, 0, now) != 0 || r.Take(a, 1, 0, now) < 98*time.Second || r.Take(b, 1, 0, now) != 0 {
		t.Error("one request of any size, and then a wait, of this token alone")
	}
	if r.Take(nil, 1, 1, now) != 0 || r.Take(&Token{Name: "c"}, 1<<40, 1<<40, now) != 0 || len(r.by) != 2 {
		t.Errorf("what has no rate is counted: %d", len(r.by))
	}
	a.Rate.Events = 1000
	if wait := r.Take(a, 1, 0, now); wait <= 0 || wait > time.Second {
		t.Errorf("a larger rate waits %s", wait)
	}
	tiny := &Token{Name: "tiny", Rate: Rate{Bytes: 1e-9}}
	r.Take(tiny, 1, 1<<30, now)
	if wait := r.Take(tiny, 1, 1, now); wait < maxRateWait || wait > maxRateWait+time.Second {
		t.Errorf("it waits %s", wait)
	}
	for i := range 3 * MaxTokens {
		r.Take(&Token{Name: fmt.Sprint(i), Rate: Rate{Events: 1}}, 100, 0, now)
	}
	if len(r.by) > MaxTokens {
		t.Errorf("%d tokens are kept", len(r.by))
	}
}
