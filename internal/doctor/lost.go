package doctor

import (
	"context"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
)

// lost names topics that the registry does not know though something speaks of them.
func (c *check) lost(ctx context.Context) {
	v, err := verify.New(c.nc, c.reg, c.db)
	if err != nil {
		c.result("topics", err, "", "")
		return
	}
	found, err := v.Lost(ctx, "")
	if err != nil {
		c.result("topics", err, "", "")
		return
	}
	for i := range found {
		c.note("topic "+found[i].Topic, Fail, found[i].Do(), "%s", found[i].What())
	}
}
