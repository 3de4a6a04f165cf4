package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// The outcomes of a check.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Found  string `json:"found"`
	// Do is what to do about it; empty when nothing.
	Do string `json:"do,omitempty"`
}

// Config says where the parts of an Almanac are. What a function opens stays its
// caller's, who may give what is open already.
type Config struct {
	// OpenNATS and OpenTables reach the two servers. NATSURL names the first in findings. Where the registry cannot be opened, the
	// connection is returned beside the error.
	OpenNATS   func(ctx context.Context, within time.Duration) (*nats.Conn, *registry.Registry, error)
	OpenTables func() (*tables.DB, error)
	// OpenGatewayTables reaches ClickHouse by the account that a gateway reads by, and its caller closes that; nil: there is no other account.
	OpenGatewayTables func() (*tables.DB, error)
	NATSURL           string
	// Monitors are the monitoring ports of NATS servers, MaxMonitors at most; CheckMonitor refuses some. NATSNeeds is what
	// each must allow.
	Monitors  []string
	NATSNeeds NATSNeeds
	// Limits are those that the streams should have.
	Limits schemas.StreamLimits
	// ReaderUser is the account that people's SQL runs under; empty: none is known.
	ReaderUser, ReaderPassword string
	// Away asks a process that runs which servers it finds away, and since when. nil: none is known.
	Away func(context.Context) ([]query.Away, error)
	// HTTP is the address of an `almanac up`'s own HTTP; empty: it is not asked.
	HTTP string
	// OwnEngine says that ClickHouse is the engine of the `almanac up` on Dir: its first disk is that of Dir.
	OwnEngine bool
	// Dir is the directory of an `almanac up`, and Free how many bytes of its disk are free for it, and how many it has;
	// empty: its disk is not looked at.
	Dir  string
	Free func() (free, all int64, err error)
	// Private is a file of an `almanac up` that SQL must not read; empty: it is not tried.
	Private string
	// Translate says an error in words for people, with a next step where there is one.
	// Default: its text.
	Translate func(error) (said, next string)
}

// check is one run: the checks in the order in which each makes sense, and what they
// found.
type check struct {
	cfg   Config
	nc    *nats.Conn
	reg   *registry.Registry
	db    *tables.DB
	rows  func() reached
	node  func() connected
	ready func() readiness
	away  func() []query.Away
	found []Finding
	usage map[string]streamUsage // of the streams
	// storeOff: NATS answers and stores nothing.
	storeOff bool
}

// maxTime bounds all checks together.
const maxTime = 30 * time.Second

// Run makes all checks. What it cannot reach is a finding.
func Run(ctx context.Context, cfg Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	c := &check{cfg: cfg, usage: map[string]streamUsage{}}
	// At once: each of them may be away, and the wait for it is the longest part then.
	c.away = c.askAway(ctx)
	c.rows, c.node, c.ready = c.reach(ctx), c.connect(ctx), c.askReady(ctx)
	c.process()
	c.monitors(ctx, monitorTime) // also where NATS takes no client
	if c.nats(ctx) {
		c.streams(ctx)
		c.members(ctx)
		c.lacking(ctx)
		c.timers(ctx)
		c.alerts(ctx)
	}
	stores := c.clickhouse(ctx)
	if c.reg != nil {
		c.retention(ctx, time.Now())
	}
	if stores && c.reg != nil {
		c.account(ctx)
		c.lag(ctx)
		c.rebuilds(ctx)
		c.cold(ctx, time.Now())
		c.lost(ctx)
		c.fields(ctx)
		c.documents(ctx)
		c.meters(ctx)
		c.receivers(ctx)
	}
	c.producers(stores)
	c.disk()
	return c.found
}

func (c *check) note(check, status, do, found string, args ...any) {
	c.found = append(c.found, Finding{check, status, fmt.Sprintf(found, args...), do})
}

// result notes OK when err is nil, and otherwise a failure.
func (c *check) result(check string, err error, do, found string, args ...any) bool {
	if err == nil {
		c.note(check, OK, "", found, args...)
		return true
	}
	said, next := err.Error(), ""
	if c.cfg.Translate != nil {
		said, next = c.cfg.Translate(err)
	}
	if errors.Is(err, streams.ErrDenied) { // which says nothing of what is looked at
		do = "connect as the user operator, which may look at everything"
	}
	c.note(check, Fail, cmp.Or(do, next), "%s", said)
	return false
}
