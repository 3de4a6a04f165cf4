package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/schemas"
)

// SyncAlways is what /readyz says of a NATS server that writes to disk before it
// acknowledges.
const SyncAlways = "always"

// process asks the `up` itself.
func (c *check) process(ctx context.Context) {
	if c.cfg.HTTP == "" {
		return
	}
	ready, err := ops.Ask(ctx, c.cfg.HTTP)
	if err == nil && !ready.Ready {
		var why []string
		for _, r := range ready.Reasons {
			why = append(why, r.String())
		}
		err = errors.New(strings.Join(why, "; "))
	}
	if !c.result("process", err, "look at the log of almanac up", "%s says it is ready", c.cfg.HTTP) {
		return
	}
	if ready.Sync == SyncAlways {
		c.note("fsync", OK, "", "NATS writes to disk before it acknowledges")
		return
	}
	c.note("fsync", Warn, "see that the NATS server has sync_interval: always", "NATS runs elsewhere; whether it writes to disk before it acknowledges cannot be told from here")
}

// lowDisk is where an `up` should be given more: merges need room for a while.
const lowDisk = 2 << 30

func (c *check) disk() {
	if c.cfg.Dir == "" {
		return
	}
	free, err := c.cfg.Free()
	if c.result("disk", err, "", "%s free for %s", schemas.FormatBytes(float64(free)), c.cfg.Dir) && free < lowDisk {
		c.note("disk", Warn, "free some", "less than %s", schemas.FormatBytes(lowDisk))
	}
}
