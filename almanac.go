package almanac

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
)

// Client is one program's way to one Almanac. It is safe for concurrent use.
type Client struct {
	cfg Config
	nc  *nats.Conn
	reg *registry.Registry
	db  *tables.DB // nil without ClickHouse

	// opening is held by the caller that opens a producer or the reader, so that none is opened twice.
	opening chan struct{}

	mu        sync.Mutex
	closed    bool
	producers map[string]*producer.Producer // by topic
	reader    *reading                      // nil until it is asked for
}

// Open connects to NATS and opens Almanac on it. ctx bounds reading the registry; dialling ends within two seconds a server.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	var db *tables.DB
	if cfg.ClickHouse != "" {
		var err error
		if db, err = tables.Open(cfg.ClickHouse); err != nil {
			return nil, fmt.Errorf("%w: ClickHouse: %w", ErrConfig, err)
		}
	}
	c := &Client{cfg: cfg, db: db, opening: make(chan struct{}, 1), producers: map[string]*producer.Producer{}}
	if err := c.connect(ctx); err != nil {
		return nil, errors.Join(err, c.disconnect())
	}
	return c, nil
}

func (c *Client) connect(ctx context.Context) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.nc, err = streams.Connect(c.cfg.NATS, c.cfg.options()...); err != nil {
		return err
	}
	if c.reg, err = registry.Open(ctx, c.nc); err != nil {
		return err
	}
	if c.db != nil {
		c.db.MeantFor(c.reg)
		c.reg = c.reg.WithThird(c.db)
	}
	return nil
}

// disconnect drops the connections.
func (c *Client) disconnect() error {
	if c.nc != nil {
		c.nc.Close()
	}
	if c.db == nil {
		return nil
	}
	return c.db.Close()
}

// once returns what have finds, or opens it and has keep remember it. Of several callers one opens.
func once[T any](ctx context.Context, c *Client, have func() (T, bool), open func() (T, error), keep func(T), discard func(T)) (none T, err error) {
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	c.mu.Lock()
	v, found := have()
	closed := c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return none, ErrClosed
	case found:
		return v, nil
	}
	if v, err = open(); err != nil {
		return none, err
	}
	c.mu.Lock()
	closed = c.closed
	if !closed {
		keep(v)
	}
	c.mu.Unlock()
	if closed {
		discard(v)
		return none, ErrClosed
	}
	return v, nil
}

// usable reports ErrClosed after Close.
func (c *Client) usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return nil
}

// Close flushes and closes the producers, each as producer.Close does until ctx ends, and drops the connections.
// Only the first call does anything.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	done := c.closed
	c.closed = true
	c.mu.Unlock() // nothing is added from here on
	if done {
		return nil
	}
	topics := slices.Sorted(maps.Keys(c.producers))
	errs := make([]error, len(topics))
	var closing sync.WaitGroup
	for i, topic := range topics {
		closing.Go(func() {
			if err := c.producers[topic].Close(ctx); err != nil {
				errs[i] = fmt.Errorf("closing the producer of topic %q: %w", topic, err)
			}
		})
	}
	closing.Wait()
	if c.reader != nil {
		c.reader.stop()
	}
	return errors.Join(append(errs, c.disconnect())...)
}
