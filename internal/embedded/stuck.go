package embedded

import (
	"context"
	"fmt"
	"time"
)

// A statement can stop where nothing ends it, such as one that reads a pipe by its path below /proc/self/fd, which no
// rule of the kernel's holds back: neither its limits nor KILL QUERY reach it, and it keeps its place among those of its
// account. With all places taken no reader gets an answer. So an engine with a statement of UserReader that runs for longer
// than any may is killed, which loses nothing, and started again.

// stuckAfter is what max_execution_time may be at most, and as long again for a client that takes its answer slowly
// (send_timeout), with a minute.
const stuckAfter = 11 * time.Minute

// endStuck kills the engine once a statement of UserReader is stuck, and returns then or when ctx ends.
func (c *ClickHouse) endStuck(ctx context.Context, current *child) {
	tick := time.NewTicker(c.cfg.StuckAfter / 10)
	defer tick.Stop()
	stuck := fmt.Sprintf("SELECT count() FROM system.processes WHERE user = '%s' AND elapsed > %g", UserReader, c.cfg.StuckAfter.Seconds())
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, c.cfg.StuckAfter/10)
		n, err := c.endpoint.query(asking, stuck)
		cancel()
		if err == nil && n != "0" { // an engine that does not answer is doctor's to name
			c.cfg.Log.say(LevelWarn, "clickhouse", fmt.Sprintf("%s statements of the account %s have run for more than %s, and nothing ends them: the engine is killed", n, UserReader, c.cfg.StuckAfter))
			_ = current.cmd.Process.Kill()
			return
		}
	}
}
