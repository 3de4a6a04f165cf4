package doctor

import (
	"cmp"
	"context"
	"fmt"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// A disk that is low should be given more: merges need room for a while, and streams fill what is left.
const (
	lowDisk  = 2 << 30
	lowShare = 0.1
)

const doLowDisk = "free some, or move closed shards to another disk: cold_dir and almanac topics apply TOPIC --cold-after-days DAYS"

// disk looks at the disk of an `up`'s directory.
func (c *check) disk() {
	if c.cfg.Dir == "" {
		return
	}
	free, all, err := c.cfg.Free()
	if !c.result("disk", err, "", "%s free for %s", schemas.FormatBytes(float64(free)), c.cfg.Dir) {
		return
	}
	if low := diskLow(float64(free), float64(all)); low != "" {
		c.note("disk", Warn, doLowDisk, "%s", low)
	}
}

// diskLow says that a disk has too little free; "" where it has enough.
func diskLow(free, all float64) string {
	switch {
	case free < lowDisk:
		return "less than " + schemas.FormatBytes(lowDisk)
	case free < lowShare*all:
		return fmt.Sprintf("less than %.0f %% of its %s", 100*lowShare, schemas.FormatBytes(all))
	}
	return ""
}

// disks looks at those that ClickHouse has, a cold one among them.
func (c *check) disks(ctx context.Context) {
	all, err := c.db.Disks(ctx)
	if err != nil {
		c.result(checkDisks, err, "let Almanac's account read system.disks", "")
		return
	}
	c.found = append(c.found, lowDisks(all, c.cfg.OwnEngine)...)
}

const checkDisks = "ClickHouse disks"

// lowDisks names the disks of ClickHouse that have too little free, or the fullest one. The first one of an `up`'s own engine is left to
// the check of its directory.
func lowDisks(all []tables.Disk, own bool) (found []Finding) {
	fullest := ""
	for _, d := range all {
		if own && d.Name == schemas.DiskDefault || !d.Bounded() {
			continue
		}
		has := fmt.Sprintf("%s free on the disk %s", schemas.FormatBytes(float64(d.Free)), d.Name)
		fullest = cmp.Or(fullest, has)
		if low := diskLow(float64(d.Free), float64(d.Total)); low != "" {
			found = append(found, Finding{checkDisks, Warn, has + ", " + low, doLowDisk})
		}
	}
	if found == nil && fullest != "" {
		return []Finding{{checkDisks, OK, fullest, ""}}
	}
	return found
}
