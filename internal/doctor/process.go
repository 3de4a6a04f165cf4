package doctor

import (
	"context"
	"errors"
	"fmt"
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
	for _, r := range ready.Impaired {
		c.note("process", Fail, "look at the log of the process", "%s", r.String())
	}
	if ready.Sync == SyncAlways {
		c.note("fsync", OK, "", "NATS writes to disk before it acknowledges")
		return
	}
	c.note("fsync", Warn, "see that the NATS server has sync_interval: always", "NATS runs elsewhere; whether it writes to disk before it acknowledges cannot be told from here")
}

// A disk that is low should be given more: merges need room for a while, and streams fill what is left.
const (
	lowDisk  = 2 << 30
	lowShare = 0.1
)

func (c *check) disk() {
	if c.cfg.Dir == "" {
		return
	}
	free, all, err := c.cfg.Free()
	if !c.result("disk", err, "", "%s free for %s", schemas.FormatBytes(float64(free)), c.cfg.Dir) {
		return
	}
	if low := diskLow(free, all); low != "" {
		c.note("disk", Warn, "free some, or move closed shards to another disk: cold_dir and almanac topics apply TOPIC --cold-after-days DAYS", "%s", low)
	}
}

// diskLow says that a disk has too little free; "" where it has enough.
func diskLow(free, all int64) string {
	switch {
	case free < lowDisk:
		return "less than " + schemas.FormatBytes(lowDisk)
	case float64(free) < lowShare*float64(all):
		return fmt.Sprintf("less than %.0f %% of its %s", 100*lowShare, schemas.FormatBytes(float64(all)))
	}
	return ""
}
