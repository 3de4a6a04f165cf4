package doctor

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
)

// natsAccount names the checks of what users of NATS may do.
const natsAccount = "NATS account"

// natsRights looks whether the user that is connected may do what its namesake in Almanac's table may, or the operator where it has
// no namesake there. Run with the settings of a part, it names what that part lacks.
func (c *check) natsRights(ctx context.Context) {
	user, have, err := streams.OwnRights[access.NATSRights](ctx, c.nc)
	switch {
	case errors.Is(err, streams.ErrNoRights):
		c.note(natsAccount, Warn, "compare the users of the server with `almanac config nats`", "%v", err)
		return
	case err != nil:
		c.result(natsAccount, err, "", "")
		return
	}
	need := access.NATSUserOf(user)
	if need == nil {
		need = access.NATSUserOf(access.UserOperator)
	}
	if lacks := need.Lacks(have); len(lacks) > 0 {
		c.note(natsAccount, Fail, doGive(need.Name), "%s may not do what the user %s needs: it lacks %s", cmp.Or(user, "a client without a user"), need.Name, strings.Join(lacks, "; "))
		return
	}
	c.note(natsAccount, OK, "", "%s may do what the user %s needs", cmp.Or(user, "a client without a user"), need.Name)
}

// lacking names the processes that say that their users of NATS, or their accounts of ClickHouse, lack a right: routers, sinks,
// dispatchers and gateways. One that may not write that entry either says it in its log alone.
func (c *check) lacking(ctx context.Context) {
	all, err := registry.ListLacking(ctx, c.reg.JetStream())
	if err != nil {
		c.result(natsAccount, err, "", "")
		return
	}
	for _, l := range all {
		if need := access.ClickHouseUserOf(l.Needs); need != nil {
			found, do := need.Lacking(l.User, l.Database, l.Lacks)
			c.note(clickHouseAccount, Fail, do, "%s: its account %s", l, found)
			continue
		}
		c.note(natsAccount, Fail, doGive(l.Part), "%s, may not do what it needs: its user %s lacks %s", l, l.User, strings.Join(l.Lacks, "; "))
	}
}

func doGive(user string) string {
	return "add to the server's configuration what it lacks, from the lines of the user " + user + " that `almanac config nats` prints"
}
