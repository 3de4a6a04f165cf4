package budget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// DefaultBytes is what the reads of a process hold at most, unless it is told otherwise.
const DefaultBytes = 512 << 20

// share is how many reads as large as one may be fit into a budget.
const share = 2

var (
	// ErrFull: the reads under way leave no room for another.
	ErrFull = errors.New("no memory for another read")
	// ErrLarge: a read would hold more than one may.
	ErrLarge = errors.New("the read holds too much")
)

// Budget is the memory that reads share. It is safe for concurrent use.
type Budget struct {
	limit, each int64
	used        atomic.Int64
}

// New makes a budget of some bytes.
func New(limit int64) *Budget { return &Budget{limit: limit, each: max(1, limit/share)} }

// Used returns how much is taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// Account is what one read holds. A nil one takes nothing and refuses nothing. It is safe for
// concurrent use.
type Account struct {
	b     *Budget
	mu    sync.Mutex
	held  int64
	ended bool // what outlives its read, such as a look that others share, takes nothing more
}

type key struct{}

// Begin opens an account, which the context carries. End it.
func (b *Budget) Begin(ctx context.Context) (context.Context, *Account) {
	a := &Account{b: b}
	return context.WithValue(ctx, key{}, a), a
}

// Of returns the account of a context; nil for none.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(key{}).(*Account)
	return a
}

// Take takes n bytes. After an error nothing more is held than before.
func (a *Account) Take(n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.ended:
		return nil
	case a.held+n > a.b.each:
		return fmt.Errorf("%w: more than %d MiB; narrow it, as with from, to, where or limit", ErrLarge, a.b.each>>20)
	}
	if used := a.b.used.Add(n); used > a.b.limit {
		a.b.used.Add(-n)
		return fmt.Errorf("%w: those under way hold the %d MiB that they may together; ask again in a second", ErrFull, a.b.limit>>20)
	}
	a.held += n
	return nil
}

// Free gives back n bytes that were taken.
func (a *Account) Free(n int64) {
	if a == nil || n <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.held -= n
		a.b.used.Add(-n)
	}
}

// Held returns how much is taken; of a nil account nothing.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// Part takes as much as there is for one more read, at least least and at most: a quarter of what
// is free. It returns what was taken.
func (a *Account) Part(least, most int64) (int64, error) {
	if a == nil {
		return most, nil
	}
	n := min(most, max(least, (a.b.limit-a.b.used.Load())/4))
	return n, a.Take(n)
}

// End gives back all that is held.
func (a *Account) End() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.b.used.Add(-a.held)
	a.held, a.ended = 0, true
}

// takeBytes is how much a Reader takes for at once.
const takeBytes = 32 << 10

// Reader reads an answer that is kept: for each byte it takes so many of the context's account.
func Reader(ctx context.Context, r io.Reader, times int64) io.Reader {
	a := Of(ctx)
	if a == nil {
		return r
	}
	return &reader{r: r, a: a, times: times}
}

type reader struct {
	r     io.Reader
	a     *Account
	times int64
	ahead int // bytes that are taken for and not read yet
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	if r.ahead <= 0 {
		if err := r.a.Take(takeBytes * r.times); err != nil {
			return 0, err
		}
		r.ahead += takeBytes
	}
	n, err := r.r.Read(b[:min(len(b), r.ahead)])
	r.ahead -= n
	return n, err
}
