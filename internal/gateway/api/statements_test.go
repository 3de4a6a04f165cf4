package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
)

// A statement is found by its owner alone, the newest of an id first, and the last that ended are kept.
func TestStatements(t *testing.T) {
	t.Parallel()
	var s statements
	ctx, first := s.begin(t.Context(), "alice", "q")
	s.end(first, errors.New("broken"))
	if ctx.Err() == nil {
		t.Error("the context of a statement that ended goes on")
	}
	if _, v, err := s.find("alice", "q"); err != nil || v.State != statementFailed {
		t.Errorf("%+v, %v", v, err)
	}
	ctx, running := s.begin(t.Context(), "alice", "q")
	for _, other := range []string{"bob", ""} {
		if _, _, err := s.find(other, "q"); !errors.Is(err, errNoStatement) {
			t.Errorf("%q finds another's statement: %v", other, err)
		}
	}
	one, v, err := s.find("alice", "q")
	if err != nil || one != running || v.State != statementRuns {
		t.Fatalf("%+v, %v", v, err)
	}
	one.stop(errCancelled)
	s.end(one, errCancelled)
	s.end(one, nil) // the request that ran it
	if _, v, _ := s.find("alice", "q"); v.State != statementCancelled || !errors.Is(context.Cause(ctx), errCancelled) {
		t.Errorf("%+v, %v", v, context.Cause(ctx))
	}
	_, stays := s.begin(t.Context(), "alice", "stays")
	for i := range 2 * keptStatements {
		_, done := s.begin(t.Context(), "alice", fmt.Sprint(i))
		s.end(done, nil)
	}
	if _, v, err := s.find("alice", "stays"); err != nil || v.State != statementRuns || len(s.all) != keptStatements {
		t.Errorf("%d are kept, and one that runs is %+v, %v", len(s.all), v, err)
	}
	s.end(stays, nil)
}

// A statement is its token's, whatever address it comes from. Clients without a token are told apart by their address alone.
func TestOwners(t *testing.T) {
	t.Parallel()
	owner := func(name, from string) string {
		r := httptest.NewRequestWithContext(access.With(t.Context(), &access.Principal{Name: name}), http.MethodGet, "/", nil)
		r.RemoteAddr = from
		return ownerOf(r)
	}
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"a token at two addresses":   {owner("web", "10.0.0.1:1"), owner("web", "10.0.0.2:1"), true},
		"two tokens at an address":   {owner("web", "10.0.0.1:1"), owner("job", "10.0.0.1:1"), false},
		"none at two addresses":      {owner("", "10.0.0.1:1"), owner("", "10.0.0.2:1"), false},
		"none at two ports":          {owner("", "10.0.0.1:1"), owner("", "10.0.0.1:2"), true},
		"none, and a token so named": {owner("", "10.0.0.1:1"), owner("10.0.0.1", "10.0.0.1:1"), false},
		"none of this process":       {owner("", ""), owner("", ""), true},
	} {
		if (c.a == c.b) != c.same {
			t.Errorf("%s: %q and %q", name, c.a, c.b)
		}
	}
}
