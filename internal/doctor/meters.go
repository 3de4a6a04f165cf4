package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// meters looks for copies of diffs that say something else than the diff that counts.
func (c *check) meters(ctx context.Context) {
	topics, err := c.reg.Topics(ctx)
	if err != nil {
		return // the check of the registry says so
	}
	r, err := query.New(c.nc, c.reg, c.db)
	if err != nil {
		return // the check of the tables says so
	}
	seen, bad := 0, false
	for i := range topics {
		t := &topics[i]
		if t.Kind != kinds.Meter {
			continue
		}
		seen++
		found, err := usage.New(r).Contradictions(ctx, usage.Request{Topic: t.Name, From: time.Unix(0, 0), To: time.Now().Add(t.MaxFuture())})
		switch {
		case err != nil:
			c.result("copies of "+t.Name, err, "", "")
			return
		case found != nil:
			bad = true
			from := found.Pairs[0].Counts.Time.UTC()
			c.note("copies of "+t.Name, Warn, fmt.Sprintf("almanac usage %s --from %s --to now --diffs names them; a diff is corrected by another with a cause of its own", t.Name, from.Format(time.RFC3339)), "%s", found)
		}
	}
	if seen > 0 && !bad {
		c.note("copies", OK, "", "of %d topics of kind meter no copy says something else than the diff that counts", seen)
	}
}
