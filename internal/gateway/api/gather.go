package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// gatherBytes is how much of a body is read at once. One that says that it is shorter takes its length of the account, and a byte
// more for its end.
const (
	gatherBytes   = 16 << 10
	leastGathered = 1 << 10 // what a request that waits costs besides its body, about
)

// gather reads the body of a request before the request takes a slot: one that comes slowly would hold what others need. What came
// is taken from the request's account. A body above limit is left to its route, which refuses it.
func gather(w http.ResponseWriter, r *http.Request, limit int64) error {
	if r.ContentLength == 0 || r.Body == nil {
		return nil
	}
	in, account := request.Pace(w, r), budget.Of(r.Context())
	var body []byte
	for int64(len(body)) <= limit {
		if len(body) == cap(body) {
			more := max(gatherBytes, len(body))
			if len(body) == 0 && r.ContentLength > 0 {
				more = int(min(gatherBytes, max(leastGathered, r.ContentLength+1)))
			}
			if err := account.Take(int64(more)); err != nil {
				return refusal(err)
			}
			body = append(make([]byte, 0, len(body)+more), body...)
		}
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			return nil
		}
		if err != nil {
			return in.Broken()
		}
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), in))
	return nil
}
