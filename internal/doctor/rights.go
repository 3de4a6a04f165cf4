package doctor

import (
	"context"
	"errors"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/tables"
)

// clickHouseAccount names the checks of what accounts of ClickHouse may do.
const clickHouseAccount = "ClickHouse account"

// rights asks ClickHouse whether the account that is connected may do what its namesake in Almanac's table may, or the operator
// where it has no namesake there.
func (c *check) rights(ctx context.Context) {
	name, err := c.db.CurrentUser(ctx)
	if err != nil {
		c.result(clickHouseAccount, err, "", "")
		return
	}
	c.rightsOf(ctx, c.db, name, access.ClickHouseWorkOf(name))
}

// gatewayTables looks at the account that a gateway reads by, where the settings have one.
func (c *check) gatewayTables(ctx context.Context) {
	if c.cfg.OpenGatewayTables == nil {
		return
	}
	db, err := c.cfg.OpenGatewayTables()
	if err != nil {
		c.result(clickHouseAccount, err, "", "")
		return
	}
	defer func() { _ = db.Close() }()
	name, err := db.CurrentUser(ctx)
	if err != nil {
		if errors.Is(err, tables.ErrAccount) {
			c.note(clickHouseAccount, Fail, "correct clickhouse_reads, or make the account: `almanac config clickhouse` prints it", "ClickHouse refuses the account of clickhouse_reads, or its password: the gateway's pages, counts, tails and series are not answered")
			return
		}
		c.result(clickHouseAccount, err, "", "")
		return
	}
	c.rightsOf(ctx, db, name, access.ClickHouseUserOf(access.UserGateway))
}

// rightsOf looks whether the account that a connection has may do what one of Almanac's table may.
func (c *check) rightsOf(ctx context.Context, db *tables.DB, name string, user *access.ClickHouseUser) {
	c.lacks(name, user, func(rights string) (bool, error) { return db.Has(ctx, rights) })
}

func (c *check) lacks(name string, user *access.ClickHouseUser, has func(rights string) (bool, error)) {
	missing, err := user.Lacks(c.db.Database, has)
	switch {
	case err != nil:
		c.result(clickHouseAccount, err, "", "")
	case len(missing) > 0:
		found, do := user.Lacking(name, c.db.Database, missing)
		c.note(clickHouseAccount, Fail, do, "%s", found)
	default:
		c.note(clickHouseAccount, OK, "", "%s may do what the account %s needs", name, user.Name)
	}
}

// readerRights looks at the account that people's SQL runs under, where the settings have one: the reader's rights, by whatever name it has.
func (c *check) readerRights(ctx context.Context) {
	if c.cfg.ReaderUser == "" {
		return
	}
	c.lacks(c.cfg.ReaderUser, access.ClickHouseUserOf(access.UserReader), func(rights string) (bool, error) {
		return c.db.HasAs(ctx, c.cfg.ReaderUser, c.cfg.ReaderPassword, rights)
	})
}
