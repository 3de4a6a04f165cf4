package fanout

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A panic in a group is its caller's, with the stack of the function that made it, also from a group inside.
func TestPanicsAreTheCallers(t *testing.T) {
	t.Parallel()
	err := Call(func() error {
		g, ctx := WithContext(t.Context())
		g.SetLimit(2)
		g.Go(func() error {
			inner, _ := WithContext(ctx)
			inner.Go(func() error { return breaks(nil) })
			return inner.Wait()
		})
		g.Go(func() error { <-ctx.Done(); return context.Cause(ctx) })
		return g.Wait()
	})
	var p *Panic
	if !errors.As(err, &p) || !strings.Contains(string(p.Stack), "breaks") || !strings.Contains(err.Error(), "nil map") {
		t.Errorf("%v", err)
	}
}

func breaks(m map[string]int) error {
	m["a"] = 1
	return nil
}

func TestErrors(t *testing.T) {
	t.Parallel()
	want := errors.New("one")
	g, ctx := WithContext(t.Context())
	g.Go(func() error { return want })
	g.Go(func() error { <-ctx.Done(); return nil })
	if err := g.Wait(); !errors.Is(err, want) {
		t.Error(err)
	}
}
