package bench

import (
	"cmp"
	"runtime"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what is measured, and on what.
type Config struct {
	// Events in all; default 5,000,000. Producers that log them at once; default
	// 4. Topics they go to, in turn; default 1. Lanes of each topic; default
	// schemas.DefaultLanes.
	Events, Producers, Topics, Lanes int
	// EventBytes is about the size of an event: the sum of its strings. Default
	// 200.
	EventBytes int
	// Inserts at once, of the sinks and of the ceiling; default as sinks.Config.
	Inserts int

	NATS    *nats.Conn
	NATSURL string // producers connect by themselves
	// Connect gives router and sinks a connection each; nil: to NATSURL.
	Connect  func() (*nats.Conn, error)
	Registry *registry.Registry
	// DB has a database of its own, which the bench fills.
	DB *tables.DB
	// EnginePID is ClickHouse's process on this machine; 0 when there is none.
	EnginePID int
	// Profile is a file for the pipeline's CPU profile (pprof, labelled by part);
	// empty: none.
	Profile string
	// Progress is told how many of the events are stored; may be nil.
	Progress func(phase string, done, of int)

	prefix string // of the topics' names; default "bench_"
	// rotateRows is when a shard is full; 0: as usual.
	rotateRows uint64
	// months that events go to in turn, back from this one; 0: now.
	months int
	// linger of the sinks; default 1 s, so that figures up to the last row do not wait
	// for what topics allow, and can be compared with older ones.
	linger time.Duration
	// sqlFresh of the topics; default the least there is, for the same reason in figures
	// with sinks of their own process. Negative: the topics' default.
	sqlFresh time.Duration
	// housekeeping of the sinks; 0: as usual.
	housekeeping time.Duration
	// clickhouse is the DSN behind DB, for tests.
	clickhouse string
}

// topicName is the nth topic of the bench.
func (c *Config) topicName(n int) string { return c.prefix + strconv.Itoa(n) }

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.Events, 5_000_000)
	def(&c.Producers, 4)
	def(&c.Topics, 1)
	def(&c.Lanes, schemas.DefaultLanes)
	def(&c.EventBytes, 200)
	def(&c.Inserts, max(2, runtime.GOMAXPROCS(0)))
	c.linger, c.sqlFresh = cmp.Or(c.linger, time.Second), cmp.Or(c.sqlFresh, schemas.MinSQLFresh)
	c.prefix = cmp.Or(c.prefix, "bench_")
	if c.Progress == nil {
		c.Progress = func(string, int, int) {}
	}
	return c
}
