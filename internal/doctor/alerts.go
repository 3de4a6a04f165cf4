package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/alerts"
	archive "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// alerts looks for rules that are not evaluated.
func (c *check) alerts(ctx context.Context) {
	groups, err := alerts.New(c.reg, nil).Health(ctx)
	if err != nil {
		c.result("alerts", err, "", "")
		return
	}
	if len(groups) == 0 {
		return // no rule is declared
	}
	status, do, found := ruled(groups)
	c.note("alerts", status, do, "%s", found)
}

// ruled says which rules are not evaluated: the first by name, and how many more.
func ruled(groups []alerts.GroupStatus) (status, do, found string) {
	all, wrong, first := 0, 0, ""
	for i := range groups {
		for j := range groups[i].Rules {
			all++
			if r := &groups[i].Rules[j]; r.Wrong != "" {
				if wrong++; first == "" {
					first = fmt.Sprintf("group %q, rule %q: %s", groups[i].Name, r.Title(), r.Wrong)
				}
			}
		}
	}
	if wrong == 0 {
		return OK, "", fmt.Sprintf("%d rules of %d groups are evaluated", all, len(groups))
	}
	return Warn, "docs/runbooks/alerts-not-evaluated.md has what to do for each cause", fmt.Sprintf("%d of %d rules are not evaluated; %s", wrong, all, first)
}

// refusedWithin is how far back notifications are looked at.
const refusedWithin = 24 * time.Hour

// receivers looks for receivers whose last notification failed for good, as far as ClickHouse has it.
func (c *check) receivers(ctx context.Context) {
	if _, err := c.reg.Topic(ctx, schemas.TopicAlertCalls); err != nil {
		return // no receiver was ever told
	}
	refused, err := archive.Archive{DB: c.db}.Refused(ctx, schemas.TopicAlertCalls, refusedWithin)
	if err != nil {
		c.result("receivers of alerts", err, "", "")
		return
	}
	for i := range refused {
		r := &refused[i]
		c.note("receiver "+r.Group, Warn, "correct its url, form or secret, and `almanac alerts apply` its group; it is told of the next transition, and `almanac timers retry "+r.Group+" ID --topic alert_calls` tells it of one again",
			"it was not told of %d transitions within %s, of the last at %s: %s", r.Failed, refusedWithin, time.Unix(0, r.At).UTC().Format(time.RFC3339), said(r))
	}
}

// said is how the last call of a receiver ended.
func said(r *archive.Refused) string {
	if r.Error == timer.ErrStatus {
		return fmt.Sprintf("it answered %d", r.Status)
	}
	return r.Error
}
