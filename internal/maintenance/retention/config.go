package retention

import (
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what a janitor needs. Registry and DB are required.
type Config struct {
	Registry *registry.Registry
	DB       *tables.DB

	// Owns reports, before each round, whether the janitor's work is this process's.
	// Default: always.
	Owns func() bool
	// ReplayWindow is how long stored frames stay in SHARDS. Default 7 days.
	ReplayWindow time.Duration
	// KeepTime is how long routed messages stay in EVENTS, for readers that
	// began before they were routed and for duplicate detection. Default
	// schemas.DedupWindow; less than MinKeepTime is ErrKeepTime.
	KeepTime time.Duration
	// Every is the time from one round to the next. Default 15 s.
	Every time.Duration

	// EndsEvery is how often the end of EVENTS is noted in the registry, when it moved.
	// Default 1 s: messages that EVENTS loses before a router saw them are named if they
	// are older than that.
	EndsEvery time.Duration

	// MayPurge returns why the streams may not be purged now, such as a disk that is
	// nearly full. The janitor asks before each round, and then stores a trial message.
	// Default: only the message.
	MayPurge func() error
	// Now is the janitor's clock. By default it is this machine's or the NATS
	// server's, whichever is earlier: a clock that runs ahead must not drop events.
	Now func() time.Time

	Hooks Hooks
	// Crash is called at the named points where tests kill the process.
	Crash func(point string)
}

// MinKeepTime is the least that KeepTime may be: queries go by checkpoints that
// are up to 3 s old, and look in EVENTS for what was routed since; two seconds more
// are for the look itself.
const MinKeepTime = 5 * time.Second

// check says what of a config, its defaults filled in, cannot be.
func (c *Config) check() error {
	if c.Registry == nil || c.DB == nil {
		return errors.New("retention: Config.Registry or Config.DB is missing")
	}
	if c.KeepTime < MinKeepTime {
		return fmt.Errorf("retention: Config.KeepTime is %s: %w: queries look in %s for what was routed up to 3 s before they began; use %s or more, or leave it out for %s",
			c.KeepTime, ErrKeepTime, schemas.StreamEvents, MinKeepTime, schemas.DedupWindow)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.ReplayWindow == 0 {
		c.ReplayWindow = 7 * 24 * time.Hour
	}
	if c.KeepTime == 0 {
		c.KeepTime = schemas.DedupWindow
	}
	if c.Every == 0 {
		c.Every = 15 * time.Second
	}
	if c.EndsEvery == 0 {
		c.EndsEvery = time.Second
	}
	if c.Crash == nil {
		c.Crash = func(string) {}
	}
	return c
}

// Hooks tell what happens; each may be nil. They must not block.
type Hooks struct {
	// Anonymised: fields of the shard's events are cleared.
	Anonymised func(ref schemas.ShardRef, fields []string)
	// Dropped: the shard's events are gone, after reason.
	Dropped func(ref schemas.ShardRef, rows uint64, reason string)
	// Fault: a step failed and will be tried again; ref is zero for what is not a shard's.
	Fault func(ref schemas.ShardRef, err error)
}

func (h *Hooks) anonymised(ref schemas.ShardRef, fields []string) {
	if h.Anonymised != nil {
		h.Anonymised(ref, fields)
	}
}

func (h *Hooks) dropped(ref schemas.ShardRef, rows uint64, reason string) {
	if h.Dropped != nil {
		h.Dropped(ref, rows, reason)
	}
}

func (h *Hooks) fault(ref schemas.ShardRef, err error) {
	if h.Fault != nil {
		h.Fault(ref, err)
	}
}
