package api

import (
	"context"
	"errors"
	"fmt"
	"testing"
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
