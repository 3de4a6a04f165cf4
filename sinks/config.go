package sinks

import (
	"errors"
	"runtime"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what sinks need. Registry and DB are required.
type Config struct {
	Registry *registry.Registry
	DB       *tables.DB

	// An insert takes up to BatchRows rows or BatchBytes encoded bytes. Defaults
	// tables.BatchRows and tables.BatchBytes: past that it gets no cheaper.
	BatchRows  uint64
	BatchBytes uint64
	// Linger is from one insert of a shard to the next while they are not full. By
	// default its topic says how fresh SQL must be (fresh.go). FirstWait is what the first frame after a quiet time waits for company;
	// default 50 ms, two producers' linger.
	Linger    time.Duration
	FirstWait time.Duration
	// MinInterval bounds how long a shard rests behind an insert where inserts take long, at
	// a machine's limit, so that they grow; default 500 ms: inserts come to 75,000 to
	// 130,000 rows on two processors. With 1.2 s SQL sees an event up to a second later,
	// and no more events are stored; with 250 ms an event costs ClickHouse a tenth more,
	// and SQL sees it no sooner. Where more shards are at work than two for each of
	// Inserts it grows with their number, up to MaxInterval; default 5 s. IdleAfter is how long
	// no frame must come for all that to end; default 500 ms, several of a router's
	// batches at full load, and a quarter of a longer rest.
	MinInterval time.Duration
	MaxInterval time.Duration
	IdleAfter   time.Duration
	// Inserts bounds the full inserts under way at once, smaller ones by their
	// rows, up to eight for a full one; as many shards again have their frames
	// fetched meanwhile. Memory is at most 2 × Inserts × (BatchBytes + one frame)
	// for usual frames. Default: the processors, at least 2.
	Inserts int
	// MaxQueueWait is how long an insert waits for its turn behind half of Inserts before
	// all slots are used; default 250 ms, two inserts of 45,000 rows.
	MaxQueueWait time.Duration
	// InsertTimeout bounds one insert with its answer. Default 60 s: three times
	// the deadline the server itself sets.
	InsertTimeout time.Duration

	// Housekeeping is how often sealed shards are closed. Default 15 s.
	Housekeeping time.Duration

	Hooks Hooks
	// Crash is called at the named points where tests kill the process, or do what happens between two steps.
	Crash CrashFunc
}

// check says what is missing in a config.
func (c *Config) check() error {
	if c.Registry == nil || c.DB == nil {
		return errors.New("sinks: Config.Registry or Config.DB is missing")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.BatchRows == 0 {
		c.BatchRows = tables.BatchRows
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = tables.BatchBytes
	}
	if c.FirstWait == 0 {
		c.FirstWait = 50 * time.Millisecond
	}
	if c.MinInterval == 0 {
		c.MinInterval = 500 * time.Millisecond
	}
	if c.MaxInterval == 0 {
		c.MaxInterval = max(5*time.Second, c.MinInterval)
	}
	if c.IdleAfter == 0 {
		c.IdleAfter = 500 * time.Millisecond
	}
	if c.Inserts == 0 {
		c.Inserts = max(2, runtime.GOMAXPROCS(0))
	}
	if c.MaxQueueWait == 0 {
		c.MaxQueueWait = 250 * time.Millisecond
	}
	if c.InsertTimeout == 0 {
		c.InsertTimeout = 60 * time.Second
	}
	if c.Housekeeping == 0 {
		c.Housekeeping = 15 * time.Second
	}
	return c
}

// Hooks tell what happens; each may be nil. They must not block.
type Hooks struct {
	// Stored: an insert brought the shard to a new head.
	Stored func(ref schemas.ShardRef, rows, bytes uint64, took time.Duration)
	// Burnt: an insert was answered OK and stored nothing.
	Burnt func(ref schemas.ShardRef, head uint64, attempt int)
	// Failed: an insert was not answered OK; whether it stored anything is found out next.
	Failed func(ref schemas.ShardRef, err error)
	// Closed: the shard is stored whole.
	Closed func(ref schemas.ShardRef, rows uint64)
	// Fault: work on a shard failed and will be tried again; ref is zero for the
	// sink's own faults.
	Fault func(ref schemas.ShardRef, err error)
}

func (h *Hooks) stored(ref schemas.ShardRef, rows, bytes uint64, took time.Duration) {
	if h.Stored != nil {
		h.Stored(ref, rows, bytes, took)
	}
}

func (h *Hooks) burnt(ref schemas.ShardRef, head uint64, attempt int) {
	if h.Burnt != nil {
		h.Burnt(ref, head, attempt)
	}
}

func (h *Hooks) failed(ref schemas.ShardRef, err error) {
	if h.Failed != nil {
		h.Failed(ref, err)
	}
}

func (h *Hooks) closed(ref schemas.ShardRef, rows uint64) {
	if h.Closed != nil {
		h.Closed(ref, rows)
	}
}

func (h *Hooks) fault(ref schemas.ShardRef, err error) {
	if h.Fault != nil {
		h.Fault(ref, err)
	}
}

// CrashFunc is told the name of each point a crash is tested at.
type CrashFunc func(point string)

func (f CrashFunc) at(point string) {
	if f != nil {
		f(point)
	}
}
