package embedded

import (
	"context"
	"fmt"
	"sync"
)

// life is the one-way part of a server's life: unknown, then either ready or failed, never back. What happens after
// the first start is told by Healthy.
type life struct {
	once *sync.Once
	done chan struct{}
	err  *error // written before done closes
}

func newLife() life {
	return life{once: new(sync.Once), done: make(chan struct{}), err: new(error)}
}

func (l life) up() { l.once.Do(func() { close(l.done) }) }

func (l life) fail(err error) {
	l.once.Do(func() {
		*l.err = err
		close(l.done)
	})
}

func (l life) wait(ctx context.Context, part string) error {
	select {
	case <-l.done:
		return *l.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the embedded %s: %w", part, ctx.Err())
	}
}
