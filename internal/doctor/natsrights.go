package doctor

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
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

// memberRights names what the user of a live member lacks, as its lease says.
func (c *check) memberRights(live []registry.Member) {
	for _, m := range live {
		if len(m.Lacks) > 0 {
			c.note(natsAccount, Fail, doGive(userOf(m.Role)), "%s may not do what it needs: its user lacks %s", m, strings.Join(m.Lacks, "; "))
		}
	}
}

// userOf is the user of the parts of a role.
func userOf(role string) string {
	return map[string]string{schemas.RoleRouter: access.UserRouter, schemas.RoleSink: access.UserSink, schemas.RoleTimers: access.UserTimers}[role]
}

func doGive(user string) string {
	return "add to the server's configuration what it lacks, from the lines of the user " + user + " that `almanac config nats` prints"
}
