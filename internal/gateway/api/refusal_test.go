package api

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// A read without room is to be sent again, and one that is too large to be narrowed.
func TestReadsWithoutSpace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{{budget.ErrFull, http.StatusServiceUnavailable, "busy"}, {budget.ErrLarge, http.StatusBadRequest, "too_large"}} {
		var got *request.Error
		if err := refusal(fmt.Errorf("query: %w", c.err)); !errors.As(err, &got) || got.Status != c.status || got.Code != c.code || got.Hint == "" {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}
