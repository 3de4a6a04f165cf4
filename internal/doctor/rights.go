package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/tables"
)

// rights asks ClickHouse whether the account that is connected may do what its namesake in Almanac's table may, or the operator
// where it has no namesake there.
func (c *check) rights(ctx context.Context) {
	name, err := c.db.CurrentUser(ctx)
	if err != nil {
		c.result("ClickHouse account", err, "", "")
		return
	}
	c.rightsOf(ctx, c.db, name, workOf(name))
}

// gatewayTables looks at the account that a gateway reads by, where the settings have one.
func (c *check) gatewayTables(ctx context.Context) {
	if c.cfg.OpenGatewayTables == nil {
		return
	}
	db, err := c.cfg.OpenGatewayTables()
	if err != nil {
		c.result("ClickHouse account", err, "", "")
		return
	}
	defer func() { _ = db.Close() }()
	name, err := db.CurrentUser(ctx)
	if err != nil {
		if errors.Is(err, tables.ErrAccount) {
			c.note("ClickHouse account", Fail, "correct clickhouse_reads, or make the account: `almanac config clickhouse` prints it", "ClickHouse refuses the account of clickhouse_reads, or its password: the gateway's pages, counts, tails and series are not answered")
			return
		}
		c.result("ClickHouse account", err, "", "")
		return
	}
	c.rightsOf(ctx, db, name, workOf(access.UserGateway))
}

// rightsOf looks whether the account that a connection has may do what one of Almanac's table may.
func (c *check) rightsOf(ctx context.Context, db *tables.DB, name string, user *access.ClickHouseUser) {
	missing, err := lacking(user.Rights(db.Database), func(r access.TableGrant) (bool, error) { return db.Has(ctx, r.Rights, r.On) })
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
