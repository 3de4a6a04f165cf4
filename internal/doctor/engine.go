package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/tables"
)

// looks is how many new connections are compared.
const looks = 10

// sameStart is how far two answers of one server may be apart about when it started: both its
// clock and its uptime are in seconds.
const sameStart = 3 * time.Second

// engine compares what new connections to ClickHouse find: one server, and the one that has the
// cluster's rows.
func (c *check) engine(ctx context.Context) bool {
	seen, err := c.db.Looks(ctx, looks)
	kept := ""
	if err == nil && c.reg != nil {
		kept, _, err = c.reg.Engine(ctx)
	}
	if err != nil {
		return c.result("engine", err, "", "")
	}
	if wrong := apart(seen); wrong != "" {
		c.note("engine", Fail, "give the address of the one server that has the rows, in place of a load balancer's", "several servers answer at %s: %s", c.db.Address(), wrong)
		return false
	}
	switch {
	case kept == "":
		c.note("engine", OK, "", "one server answers; none was chosen yet, a sink will")
	case !slices.Contains(seen[0].IDs, kept) && seen[0].Rows == 0:
		c.note("engine", Warn, "start a sink, which takes it in place of the lost one, or give the address of that", "engine %s, where the rows are, does not answer, an empty one does", kept)
		return false
	case !slices.Contains(seen[0].IDs, kept):
		c.note("engine", Fail, "give the address of the right server; if this one is to take its place: almanac repair --adopt-engine",
			"engine %s, where the rows are, does not answer, but another with %d rows", kept, seen[0].Rows)
		return false
	default:
		c.note("engine", OK, "", "%d connections reached engine %s", looks, kept)
	}
	if c.reg == nil {
		return true
	}
	c.db.MeantFor(c.reg)
	topics, err := c.reg.Topics(ctx)
	if err != nil {
		return c.result("engine", err, "", "")
	}
	foreign, err := c.db.Foreign(ctx, topics...)
	for _, wrong := range foreign {
		c.note("table engine", Fail, "rename the table", "%v", wrong)
	}
	return err == nil || c.result("engine", err, "", "")
}

// apart says in what the servers that connections found differ; empty: it was one.
func apart(seen []tables.Look) string {
	for _, l := range seen[1:] {
		a := seen[0]
		switch {
		case !slices.Equal(a.IDs, l.IDs):
			return fmt.Sprintf("some have the identity %q and some %q", strings.Join(a.IDs, ","), strings.Join(l.IDs, ","))
		case a.Server != l.Server:
			return fmt.Sprintf("some are %s and some %s", a.Server, l.Server)
		case l.Started.Sub(a.Started).Abs() > sameStart:
			return fmt.Sprintf("some started at %s and some at %s", a.Started.Format(time.RFC3339), l.Started.Format(time.RFC3339))
		}
	}
	return ""
}
