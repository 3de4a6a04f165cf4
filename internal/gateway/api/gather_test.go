package api

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// unread is a reader of which only so much is read.
type unread struct {
	t    *testing.T
	left int
}

func (u *unread) Read(b []byte) (int, error) {
	if u.left -= len(b); u.left < 0 {
		u.t.Error("it reads on above its limit")
	}
	return len(b), nil
}

// A body is gathered before a slot is taken: what its route reads is what came, and what is held is taken from the account.
func TestGather(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   io.Reader
		limit  int64
		budget int64
		code   string
		held   int64
	}{
		"none":             {nil, 100, 1, "", 0},
		"short":            {strings.NewReader("abc"), 100, 1 << 20, "", leastGathered},
		"of no length":     {io.MultiReader(strings.NewReader("abc")), 100, 1 << 20, "", gatherBytes},
		"grown":            {strings.NewReader(strings.Repeat("x", 3*gatherBytes)), 1 << 20, 1 << 20, "", 4 * gatherBytes},
		"above the limit":  {io.LimitReader(&unread{t, 4 * gatherBytes}, 3*gatherBytes), 2 * gatherBytes, 1 << 20, "", 4 * gatherBytes},
		"more than a half": {strings.NewReader(strings.Repeat("x", 3*gatherBytes)), 1 << 20, 3 * gatherBytes, "too_large", gatherBytes},
		"too slow":         {io.MultiReader(strings.NewReader("abc"), failing{os.ErrDeadlineExceeded}), 100, 1 << 20, "too_slow", gatherBytes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, account := budget.New(c.budget).Begin(t.Context())
			defer account.End()
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", c.body)
			err := gather(&deadlines{ResponseRecorder: httptest.NewRecorder()}, r, c.limit)
			if refused := new(request.Error); c.code != "" && (!errors.As(err, &refused) || refused.Code != c.code) || c.code == "" && err != nil {
				t.Errorf("%v, want %q", err, c.code)
			}
			if held := account.Held(); held != c.held {
				t.Errorf("it holds %d bytes, want %d", held, c.held)
			}
			if err != nil {
				return
			}
			got, err := io.ReadAll(r.Body)
			if want := map[string]int{"short": 3, "of no length": 3, "grown": 3 * gatherBytes, "above the limit": 3 * gatherBytes}[name]; err != nil || len(got) != want {
				t.Errorf("its route reads %d bytes, %v, want %d", len(got), err, want)
			}
		})
	}
}
