package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/timers"
)

// overdueSeconds is how late a timer may be before it is a finding.
const overdueSeconds = 5

// timers looks for timers that are overdue, and says why. It reads each topic's front through.
func (c *check) timers(ctx context.Context) {
	c.eachTopic(ctx, kinds.Timer, "timers of ", func(name, topic string) error {
		t, err := timers.Open(ctx, c.nc, c.reg, topic, timers.Config{})
		if err != nil {
			return err
		}
		groups, err := t.Status(ctx)
		if err != nil {
			return err
		}
		dispatchers, err := c.reg.LiveMembers(ctx, dispatch.Role)
		if err != nil {
			return err
		}
		status, do, found := lateTimers(groups, dispatchers)
		c.note(name, status, do, "%s", found)
		if r := c.usage[schemas.StreamTimers]; r.tight(schemas.StreamTimers) && len(groups) > 0 {
			most := slices.MaxFunc(groups, func(a, b timers.Status) int { return cmp.Compare(a.Bytes, b.Bytes) })
			c.note("room of "+topic, Warn, fmt.Sprintf("delete timers that are not needed (almanac timers rm %s ID), bound the group (almanac timers groups apply %s --max-bytes SIZE), or almanac streams apply TIMERS --bytes %s",
				most.Group, most.Group, doubled(r.limit)), "group %s holds the most of TIMERS: %s, with %d pending timers; %d groups hold it all", most.Group, schemas.FormatBytes(float64(most.Bytes)), most.Pending, len(groups))
		}
		return nil
	})
}

// lateTimers says what is overdue in a topic's groups, and why.
func lateTimers(groups []timers.Status, dispatchers int) (status, do, found string) {
	pending, firing, late, oldest := 0, 0, 0, 0.0
	var paused, why string
	for _, g := range groups {
		pending, firing = pending+g.Pending, firing+g.Firing
		if g.OldestSeconds <= overdueSeconds {
			continue
		}
		if g.Paused {
			paused = g.Group
			continue
		}
		if g.Why != "" && (why == "" || g.OldestSeconds > oldest) {
			why = ": " + g.Why
		}
		late, oldest = late+g.Overdue, max(oldest, g.OldestSeconds)
	}
	found = fmt.Sprintf("%d pending, %d firing, %d dispatchers alive", pending, firing, dispatchers)
	switch {
	case dispatchers == 0 && pending+firing > 0:
		return Fail, "start almanac up, or almanac timers run", found + ": nothing is called"
	case late > 0:
		do := "almanac timers status shows the groups; their host does not answer, or max_concurrent or max_per_second is too low"
		if why != "" {
			do = "almanac timers status shows the groups, and why each is late"
		}
		return Warn, do,
			fmt.Sprintf("%s; %d are overdue, the first by %.0f s%s", found, late, oldest, why)
	case paused != "":
		return Warn, "almanac timers resume " + paused, fmt.Sprintf("%s; timers of group %s are overdue, because it is paused", found, paused)
	}
	return OK, "", found
}
