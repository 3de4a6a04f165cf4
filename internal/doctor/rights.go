package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
)

// rights asks ClickHouse whether the account that is connected may do what its namesake in Almanac's table may, or the operator
// where it has no namesake there.
func (c *check) rights(ctx context.Context) {
	name, err := c.db.CurrentUser(ctx)
	if err != nil {
		c.result("ClickHouse account", err, "", "")
		return
	}
	user := workOf(name)
	missing, err := lacking(user.Rights(c.db.Database), func(r access.TableGrant) (bool, error) { return c.db.Has(ctx, r.Rights, r.On) })
	switch {
	case err != nil:
		c.result("ClickHouse account", err, "", "")
	case len(missing) > 0:
		c.note("ClickHouse account", Fail, "grant "+name+" what it lacks, or take the accounts of `almanac config clickhouse`",
			"%s may not do what the account %s needs: it lacks %s", name, user.Name, strings.Join(missing, "; "))
	default:
		c.note("ClickHouse account", OK, "", "%s may do what the account %s needs", name, user.Name)
	}
}

// lacking lists the rights that an account does not have.
func lacking(rights []access.TableGrant, has func(access.TableGrant) (bool, error)) (missing []string, err error) {
	for _, r := range rights {
		ok, err := has(r)
		if err != nil {
			return nil, err
		}
		if !ok {
			missing = append(missing, r.Rights+" ON "+r.On)
		}
	}
	return missing, nil
}

// workOf is the account of Almanac's that one has the work of.
func workOf(name string) *access.ClickHouseUser {
	users := access.ClickHouseUsers()
	i := slices.IndexFunc(users, func(u access.ClickHouseUser) bool { return u.Name == name })
	return &users[max(i, 0)] // the operator is the first
}
