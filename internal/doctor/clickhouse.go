package doctor

import (
	"context"
	"errors"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

func (c *check) clickhouse(ctx context.Context) bool {
	found := c.rows()
	db, version, err := found.db, found.version, found.err
	if c.db = db; db == nil {
		c.result("ClickHouse", err, "", "")
		return false
	}
	do := "start the server, or give another by --clickhouse"
	switch {
	case errors.Is(err, tables.ErrOldServer):
		do = "update it"
	case errors.Is(err, tables.ErrAccount):
		do = "" // as it is translated
	}
	if !c.result("ClickHouse", err, do, "%s at %s, database %s", version, db.Address(), db.Database) {
		if do != "" && !errors.Is(err, tables.ErrOldServer) {
			c.since(query.ServerClickHouse)
		}
		return false
	}
	// Before what needs a right: that one is named, and not what failed for it.
	c.rights(ctx)
	c.gatewayTables(ctx)
	c.readerRights(ctx)
	if !c.engine(ctx) {
		return false
	}
	c.disks(ctx)
	// Not being allowed to ask is not a finding.
	if wait, err := db.ReceiveTimeout(ctx); err == nil && wait > longestReceive {
		c.note("ClickHouse", Warn, "set http_receive_timeout to 5 in the profile of Almanac's user",
			"it waits %s for the rest of an insert: a sink that freezes in the middle of one holds its shard up so long", wait)
	}
	if err := db.TakesLong(ctx); errors.As(err, new(*tables.Error)) {
		c.note("ClickHouse", Fail, "in the profile of Almanac's user set http_max_fields to 1000, http_max_field_value_size to 131072 and http_max_multipart_form_data_size to 1073741824 or more, put no constraint on max_query_size, max_ast_elements and max_expanded_ast_elements, and let a proxy before it pass bodies of 512 MiB",
			"it does not take statements as long as many erasures of a topic make them: pages, tail, replay, sinks and erase would fail there: %v", err)
	}
	return true
}

// account tries the account that people's SQL runs under: it must read, and must
// not write.
func (c *check) account(ctx context.Context) {
	if c.cfg.ReaderUser == "" {
		c.note("SQL account", OK, "", "none known: almanac sql uses the given one, with each statement made read-only")
		return
	}
	ask := func(sql string) error { // as what may change something: the account is to forbid it, and not the statement
		return c.db.Change(ctx, &tables.Select{SQL: sql, User: c.cfg.ReaderUser, Password: c.cfg.ReaderPassword})
	}
	if err := ask("SELECT count() FROM " + sql.QuotedTable(c.db.Database, schemas.ViewShards)); err != nil {
		c.result("SQL account", err, "", "")
		return
	}
	if err := ask("CREATE TABLE " + sql.QuotedTable(c.db.Database, "almanac_doctor") + " (x Int8) ENGINE = Memory"); !errors.As(err, new(*tables.Error)) {
		c.note("SQL account", Fail, "restart almanac up, which writes the accounts again", "%s was allowed to make a table", c.cfg.ReaderUser)
		return
	}
	c.note("SQL account", OK, "", "%s reads and cannot write; almanac sql --print-dsn has its address", c.cfg.ReaderUser)
	if c.cfg.Private != "" {
		c.files(ask("SELECT length(file(" + sql.QuoteText(c.cfg.Private) + "))"))
	}
}

// files reports what became of a statement that reads a private file.
func (c *check) files(err error) {
	if refused := new(tables.Error); err != nil && !errors.As(err, &refused) {
		c.result("files", err, "", "")
	} else if err != nil {
		c.note("files", OK, "", "SQL cannot read %s: the engine is held to its own files", c.cfg.Private)
	} else {
		c.note("files", Warn, "run almanac up on Linux 5.19 or later with Landlock, or under a user that has no other files",
			"SQL can read %s and every other file of the user of almanac up", c.cfg.Private)
	}
}

// lag reads every table's heads, so it also shows that the tables answer.
func (c *check) lag(ctx context.Context) {
	r, err := query.New(c.nc, c.reg, c.db)
	var rows []query.ShardRow
	if err == nil {
		rows, err = r.Shards(ctx, "", "")
	}
	if err != nil {
		c.result("tables", err, "", "")
		return
	}
	var frames, stored uint64
	for _, s := range rows {
		frames, stored = frames+s.Frames, stored+min(s.Stored, s.Frames)
	}
	c.note("tables", OK, "", "%d shards, %d frames", len(rows), frames)
	if pending := frames - stored; pending == 0 {
		c.note("lag", OK, "", "everything routed is stored")
	} else {
		c.note("lag", OK, "", "%d frames are on their way to ClickHouse", pending)
	}
	letters, err := r.Dead(ctx, "", 1)
	switch {
	case err != nil:
		c.result("dead letters", err, "", "")
	case len(letters) > 0:
		c.note("dead letters", Warn, "almanac dead ls", "there are some: the first is of topic %s, %s", letters[0].Topic, letters[0].Reason)
	default:
		c.note("dead letters", OK, "", "none")
	}
}
