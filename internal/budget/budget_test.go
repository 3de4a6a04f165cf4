package budget

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

func TestAccounts(t *testing.T) {
	t.Parallel()
	b := New(100)
	_, first := b.Begin(t.Context())
	ctx, second := b.Begin(t.Context())
	_, third := b.Begin(t.Context())
	if Of(ctx) != second || Of(t.Context()) != nil {
		t.Error("the context does not carry the account")
	}
	for name, c := range map[string]struct {
		a    *Account
		n    int64
		want error
	}{"none": {nil, 1 << 40, nil}, "nothing": {first, 0, nil}, "less than nothing": {first, -5, nil}, "more than a share": {first, 51, ErrLarge}} {
		t.Run(name, func(t *testing.T) {
			if err := c.a.Take(c.n); !errors.Is(err, c.want) || b.Used() != 0 {
				t.Errorf("%s: %v, %d are used", name, err, b.Used())
			}
		})
	}
	if err := errors.Join(first.Take(50), second.Take(30)); err != nil {
		t.Fatal(err)
	}
	if err := third.Take(21); !errors.Is(err, ErrFull) || b.Used() != 80 {
		t.Errorf("beside 80 of 100, 21 more: %v, %d are used", err, b.Used())
	}
	second.Free(10)
	if n, err := third.Part(5, 50); n != 7 || err != nil {
		t.Errorf("a quarter of 30: %d, %v", n, err)
	}
	if n, err := third.Part(9, 50); n != 9 || err != nil {
		t.Errorf("at least 9: %d, %v", n, err)
	}
	first.End()
	first.End()
	first.Free(50)
	second.End()
	third.End()
	if b.Used() != 0 {
		t.Errorf("%d are used after the end", b.Used())
	}
}

// What readers keep of an answer never comes to more than the budget, however many read at once.
func TestReaders(t *testing.T) {
	t.Parallel()
	const limit = 40 * takeBytes
	b := New(limit)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			ctx, a := b.Begin(context.Background())
			defer a.End()
			_, err := io.ReadAll(Reader(ctx, strings.NewReader(strings.Repeat("x", 9*takeBytes)), 2))
			if used := b.Used(); used > limit || err != nil && !errors.Is(err, ErrFull) {
				t.Errorf("%d are used, %v", used, err)
			}
		})
	}
	all.Wait()
	ctx, a := b.Begin(t.Context())
	if _, err := io.ReadAll(Reader(ctx, strings.NewReader(strings.Repeat("x", 11*takeBytes)), 2)); !errors.Is(err, ErrLarge) {
		t.Errorf("twice eleven of twenty parts: %v", err)
	}
	if a.End(); b.Used() != 0 {
		t.Errorf("%d are used after the end", b.Used())
	}
	if text, err := io.ReadAll(Reader(t.Context(), strings.NewReader("abc"), 2)); err != nil || string(text) != "abc" {
		t.Errorf("without an account: %q, %v", text, err)
	}
}
