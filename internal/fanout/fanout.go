package fanout

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Group is an errgroup.Group whose Wait panics where one of its functions did.
type Group struct {
	g     *errgroup.Group
	first atomic.Pointer[Panic]
}

// WithContext returns a group and a context that ends with the first error or panic, or when Wait returns.
func WithContext(ctx context.Context) (*Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	return &Group{g: g}, ctx
}

// SetLimit bounds how many functions run at once.
func (g *Group) SetLimit(n int) { g.g.SetLimit(n) }

// Go runs f.
func (g *Group) Go(f func() error) {
	g.g.Go(func() error {
		err := Call(f)
		if p, ok := err.(*Panic); ok { //nolint:errorlint // it is Call's own
			g.first.CompareAndSwap(nil, p)
		}
		return err
	})
}

// Wait waits for all functions and returns the first error. It panics where one of them did.
func (g *Group) Wait() error {
	err := g.g.Wait()
	if p := g.first.Load(); p != nil {
		panic(p)
	}
	return err
}

// Panic is what a function panicked with, and where.
type Panic struct {
	Value any
	Stack []byte
}

// Error says with what.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Call calls f, and returns its panic as an error, a *Panic.
func Call(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if inner, ok := v.(*Panic); ok {
				err = inner
			} else {
				err = &Panic{v, debug.Stack()}
			}
		}
	}()
	return f()
}
