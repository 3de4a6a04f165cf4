package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
)

// reached is what became of an attempt to reach ClickHouse.
type reached struct {
	db      *tables.DB // nil: its address cannot be used
	version string
	err     error
}

// ServerWait is how long a server may take to say that it is there, so that all is said within 3 s where one stands still: what a process knows comes after it.
const ServerWait = 1200 * time.Millisecond

// busyWait is how long a server may take where a process that runs does not find it away: it may be busy only.
const busyWait = 10 * time.Second

// reach asks ClickHouse whether it is there, while other checks run, and returns a function that waits for the answer.
func (c *check) reach(ctx context.Context) func() reached {
	return meanwhile(func() (r reached) {
		if r.db, r.err = c.cfg.OpenTables(); r.err != nil {
			r.db = nil
			return r
		}
		if r.err = c.answers(ctx, r.db.Answers); r.err != nil {
			r.err = fmt.Errorf("ClickHouse at %s does not answer: %w", r.db.Address(), r.err)
			return r
		}
		r.version, r.err = r.db.Ping(ctx)
		return r
	})
}

// answers asks ClickHouse whether it is there.
func (c *check) answers(ctx context.Context, ask func(context.Context) error) error {
	within := func(wait time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		return ask(ctx)
	}
	err := within(ServerWait)
	if errors.Is(err, context.DeadlineExceeded) && c.seen(query.ServerClickHouse) {
		err = within(busyWait)
	}
	return err
}

// seen reports whether a process that runs finds that a server answers.
func (c *check) seen(server string) bool {
	all := c.away()
	return all != nil && !slices.ContainsFunc(all, func(a query.Away) bool { return a.Server == server })
}

// connected is what became of an attempt to reach NATS.
type connected struct {
	nc  *nats.Conn
	reg *registry.Registry
	err error
}

// connect opens NATS and the registry, while other checks run.
func (c *check) connect(ctx context.Context) func() connected {
	return meanwhile(func() (n connected) {
		n.nc, n.reg, n.err = c.cfg.OpenNATS(ctx, ServerWait)
		if n.nc == nil && n.err != nil && c.seen(query.ServerNATS) {
			n.nc, n.reg, n.err = c.cfg.OpenNATS(ctx, busyWait)
		}
		return n
	})
}

// readiness is what a process says of itself.
type readiness struct {
	ops.Readiness
	err error
}

// askReady asks the `up` itself, while other checks run.
func (c *check) askReady(ctx context.Context) func() readiness {
	return meanwhile(func() (r readiness) {
		if c.cfg.HTTP != "" {
			r.Readiness, r.err = ops.Ask(ctx, c.cfg.HTTP)
		}
		return r
	})
}

// askAway asks a process which servers it finds away, while other checks run. It returns nil where no process says it.
func (c *check) askAway(ctx context.Context) func() []query.Away {
	return meanwhile(func() []query.Away {
		if c.cfg.Away == nil {
			return nil
		}
		away, err := c.cfg.Away(ctx)
		if err != nil {
			return nil // another check says that the process does not answer
		}
		return away
	})
}

// meanwhile calls f beside what the caller does, and returns a function that waits for its answer.
func meanwhile[T any](f func() T) func() T {
	done := make(chan struct{})
	var answer T
	go func() {
		defer close(done)
		answer = f()
	}()
	return func() T {
		<-done
		return answer
	}
}

// since adds to the last finding, which is of a server that does not answer, since when it is so.
func (c *check) since(server string) {
	last := &c.found[len(c.found)-1]
	all := c.away()
	if i := slices.IndexFunc(all, func(a query.Away) bool { return a.Server == server }); i >= 0 {
		last.Found += fmt.Sprintf("; it is away since %s", all[i].Since.UTC().Format(time.RFC3339))
		return
	}
	last.Found += "; it is not known since when"
}
