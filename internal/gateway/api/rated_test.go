package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
)

// ratesAt are the rates of one token, at one instant.
type ratesAt struct {
	access.Rates
	now time.Time
}

func (c *ratesAt) WithinRate(t *access.Token, events, bytes int) error {
	if c.Take(t, events, bytes, c.now) > 0 {
		return access.ErrUnauthenticated // any
	}
	return nil
}

func (c *ratesAt) Charge(t *access.Token, events, bytes int) { c.Rates.Charge(t, events, bytes, c.now) }

// What a token writes counts by its rates as what it sends does: each change, and each byte, also where a request does not say before how
// many it has. Without a rate nothing is counted.
func TestRated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rate    access.Rate
		changes int
		length  int64
		taken   int // of ten requests with 100 bytes
	}{
		"no rate":                    {access.Rate{}, 1, 100, 10},
		"three a second":             {access.Rate{Events: 3}, 1, 100, 3},
		"batches of ten":             {access.Rate{Events: 15}, 10, 100, 2},
		"bytes":                      {access.Rate{Bytes: 250}, 1, 100, 3},
		"bytes that were not said":   {access.Rate{Bytes: 250}, 1, -1, 3},
		"events before bytes do end": {access.Rate{Events: 2, Bytes: 1e9}, 1, 100, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &API{cfg: Config{Rates: &ratesAt{now: time.Unix(1, 0)}}}
			token, taken := &access.Token{Name: "a", Rate: c.rate}, 0
			for range 10 {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/documents/app", strings.NewReader(strings.Repeat("x", 100)))
				r.ContentLength = c.length
				a.rated(token, httptest.NewRecorder(), r, func(_ http.ResponseWriter, r *http.Request) {
					taken++
					if n, err := io.Copy(io.Discard, r.Body); n != 100 || err != nil {
						t.Errorf("%d bytes, %v", n, err)
					}
					changes(r.Context(), c.changes)
				})
			}
			if taken != c.taken {
				t.Errorf("%d of ten were taken, expected %d", taken, c.taken)
			}
		})
	}
}
