package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
)

// reached is what became of an attempt to reach ClickHouse.
type reached struct {
	db      *tables.DB // nil: its address cannot be used
	version string
	err     error
}

// reach asks ClickHouse whether it is there, while other checks run, and returns a function that waits for the answer.
func (c *check) reach(ctx context.Context) func() reached {
	return meanwhile(func() (r reached) {
		if r.db, r.err = c.cfg.OpenTables(); r.err == nil {
			r.version, r.err = r.db.Ping(ctx)
		} else {
			r.db = nil
		}
		return r
	})
}

// askAway asks a process which servers it finds away, while other checks run. It returns none where no process says it.
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
