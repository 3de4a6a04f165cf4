package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// What a statement sorts and does not fit in memory is on disk, and the local mode does not hold statements to the
// settings that bound it (docs/upstream.md). So the bound is kept from outside: beyond it the statements of
// UserReader are ended. Almanac's own sort little on disk, and go on.

const (
	// spillEvery is how often the directory is measured: a disk writes some hundred MB meanwhile.
	spillEvery = time.Second
	// spillShare of the disk that is free is what readers may take, and spillMost at the most.
	spillShare = 4
	spillMost  = 32 << 30
)

// endSpills ends the statements of UserReader whenever what statements have on disk passes the bound.
func (c *ClickHouse) endSpills(ctx context.Context) {
	tick := time.NewTicker(spillEvery)
	defer tick.Stop()
	dir := filepath.Join(c.dataDir(), "tmp")
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		used := usedBytes(dir)
		if used == 0 || used <= c.spillBound(used) {
			continue
		}
		c.cfg.Log.say(LevelWarn, "clickhouse", fmt.Sprintf("statements have %s on disk that does not fit in memory: those of the account %s are ended", humanBytes(used), UserReader))
		asking, cancel := context.WithTimeout(ctx, c.cfg.StopTimeout)
		_, _ = c.endpoint.query(asking, fmt.Sprintf("KILL QUERY WHERE user = '%s' ASYNC", UserReader)) // the next look tells
		cancel()
	}
}

// spillBound is what statements may have on disk when they have used bytes.
func (c *ClickHouse) spillBound(used int64) int64 {
	if c.cfg.MaxSpillBytes > 0 {
		return c.cfg.MaxSpillBytes
	}
	free, err := FreeBytes(c.dataDir())
	if err != nil {
		return spillMost
	}
	return min((free+used)/spillShare, spillMost)
}
