package api

import (
	"context"
	"sync"
	"time"
)

// opened keeps what stands on topics open for openFor, and then as long as it says that it
// is current. What says that its topic is gone is opened again. The zero value is ready.
type opened[T any] struct {
	mu    sync.Mutex
	known map[string]openedAt[T]
}

type openedAt[T any] struct {
	part T
	at   time.Time
}

const (
	// openFor is how long a topic stays open without a look at its descriptor. A write that finds it removed says so before
	// that (Gone).
	openFor = time.Minute
	// maxKnown bounds the topics that are open; past it all are opened again.
	maxKnown = 100
)

func (o *opened[T]) open(ctx context.Context, open func(context.Context, string) (T, error), topic string) (T, error) {
	o.mu.Lock()
	known, ok := o.known[topic]
	o.mu.Unlock()
	if gone, can := any(known.part).(interface{ Gone() bool }); ok && can && gone.Gone() {
		ok = false
	}
	if ok && time.Since(known.at) < openFor {
		return known.part, nil
	}
	part, current := known.part, false
	var err error
	if again, can := any(part).(interface {
		Current(ctx context.Context) (bool, error)
	}); ok && can {
		if current, err = again.Current(ctx); err != nil {
			return part, err
		}
	}
	if !current {
		if part, err = open(ctx, topic); err != nil {
			return part, err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || len(o.known) >= maxKnown {
		o.known = map[string]openedAt[T]{}
	}
	o.known[topic] = openedAt[T]{part, time.Now()}
	return part, nil
}
