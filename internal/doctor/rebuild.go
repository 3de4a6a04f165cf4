package doctor

import (
	"context"
	"strings"
)

// rebuilds names what a rebuild left: a table that takes no inserts, a table that
// was not finished, old tables that were kept.
func (c *check) rebuilds(ctx context.Context) {
	topics, err := c.reg.Topics(ctx)
	if err != nil {
		c.result("rebuilds", err, "", "")
		return
	}
	for i := range topics {
		name := topics[i].Name
		state, err := c.db.TableState(ctx, name)
		if err != nil {
			c.result("rebuilds", err, "", "")
			return
		}
		kept, err := c.db.Kept(ctx, name)
		switch {
		case err != nil:
			c.result("rebuilds", err, "", "")
			return
		case state.Frozen:
			c.note("rebuild of "+name, Fail, "unless one is running: almanac rebuild "+name+" --yes ends it, --abort gives it up",
				"table %s takes no inserts, a rebuild holds it; events wait in the streams", name)
		case len(kept) > 0:
			c.note("rebuild of "+name, Warn, "when all is well: almanac rebuild "+name+" --drop-old-tables --yes; almanac rebuild "+name+" --dry-run says whether one has to be ended",
				"left beside the table: %s", strings.Join(kept, ", "))
		}
	}
}
