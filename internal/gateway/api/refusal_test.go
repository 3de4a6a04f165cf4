package api

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/query"
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

// TestWhoIsAwayIsSaid holds that a request whose time is over names the servers that it may have waited for.
func TestWhoIsAwayIsSaid(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0).UTC()
	var got *request.Error
	err := ofAway([]query.Away{{Server: query.ServerClickHouse, Since: at, Why: "refused"}, {Server: query.ServerNATS, Since: at, Why: "no server answers"}})
	if want := "ClickHouse is away since 2001-09-09T01:46:40Z: refused; NATS is away since 2001-09-09T01:46:40Z: no server answers"; !errors.As(err, &got) || got.Status != http.StatusServiceUnavailable || got.Message != want || got.Hint == "" {
		t.Fatalf("%+v, want 503: %s", got, want)
	}
}
