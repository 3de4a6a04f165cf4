package almanac

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/evaluate"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
)

// reading is a reader that reads ahead of queries over a connection of its own.
type reading struct {
	*query.Reader
	second *nats.Conn
	cancel context.CancelFunc
	done   chan struct{}
}

// Query returns the reader of events: pages, counts, facets, the live tail, SQL. It is shared, and Close closes it.
func (c *Client) Query(ctx context.Context) (*query.Reader, error) {
	if c.db == nil {
		return nil, fmt.Errorf("%w: set Config.ClickHouse to the address of its HTTP interface", ErrNoClickHouse)
	}
	r, err := once(ctx, c,
		func() (*reading, bool) { return c.reader, c.reader != nil },
		c.read,
		func(r *reading) { c.reader = r },
		(*reading).stop)
	if err != nil {
		return nil, err
	}
	return r.Reader, nil
}

// read begins to read.
func (c *Client) read() (*reading, error) {
	second, err := streams.Connect(c.cfg.NATS, c.cfg.options()...)
	if err != nil {
		return nil, err
	}
	r, err := query.NewFollowing(c.nc, second, c.reg, c.db)
	if err != nil {
		second.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	out := &reading{Reader: r, second: second, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(out.done)
		_ = r.Run(ctx) // it ends by ctx alone
	}()
	return out, nil
}

func (r *reading) stop() {
	r.cancel()
	<-r.done
	r.Close()
	r.second.Close()
}

// Replay returns what reads the past again, into a writer, a subject or another topic.
func (c *Client) Replay(ctx context.Context) (*replay.Replayer, error) {
	r, err := c.Query(ctx)
	if err != nil {
		return nil, err
	}
	return replay.New(ctx, replay.Config{NATS: c.nc, Registry: c.reg, DB: c.db, Reader: r})
}

// Usage returns the reader of topics of kind meter.
func (c *Client) Usage(ctx context.Context) (*usage.Reader, error) {
	r, err := c.Query(ctx)
	if err != nil {
		return nil, err
	}
	return usage.New(r), nil
}

// Trail returns the reader of topics of kind audit.
func (c *Client) Trail(ctx context.Context) (*trail.Reader, error) {
	r, err := c.Query(ctx)
	if err != nil {
		return nil, err
	}
	return trail.New(r), nil
}

// TryAlerts returns what groups of rules would have said and recorded of what was accepted since a time, and what it left out. It declares
// and records nothing, and tells no receiver.
func (c *Client) TryAlerts(ctx context.Context, groups []alerts.Group, since time.Time) (*alerts.Trial, error) {
	r, err := c.Query(ctx)
	if err != nil {
		return nil, err
	}
	if err := alerts.New(c.reg, r).Check(ctx, groups); err != nil {
		return nil, err
	}
	return evaluate.Try(ctx, evaluate.Config{NATS: c.nc, Registry: c.reg, Reader: r}, groups, since)
}

// Alerts returns what declares rules of alerts and reads what became of them.
func (c *Client) Alerts(ctx context.Context) (*alerts.Alerts, error) {
	r, err := c.Query(ctx)
	if err != nil {
		return nil, err
	}
	return alerts.New(c.reg, r), nil
}
