package doctor

import (
	"errors"
	"strings"
)

// SyncAlways is what /readyz says of a NATS server that writes to disk before it
// acknowledges.
const SyncAlways = "always"

// process says what the `up` itself answered.
func (c *check) process() {
	if c.cfg.HTTP == "" {
		return
	}
	ready := c.ready()
	err := ready.err
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
