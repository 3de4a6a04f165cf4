package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// ClickHouseUser is an account of ClickHouse. It may do what Grants give it, without what Revokes take away, and nothing else.
type ClickHouseUser struct {
	Name string
	// Short is for help: who connects as it.
	Short string

	Grants, Revokes []TableGrant
	// Profile names its settings, and what a statement may not set.
	Profile string
}

// TableGrant is rights on tables or on a kind of table.
type TableGrant struct{ Rights, On string }

// The profiles of the accounts.
const (
	profileParts  = "almanac"
	profilePages  = "pages"
	profileReader = "reader"
)

// placeholder stands for the database in what a grant is on.
const placeholder = "DATABASE"

// tablesOf is all tables of the database.
const tablesOf = placeholder + ".*"

// ClickHouseUsers are all accounts, from the greatest to the least.
func ClickHouseUsers() []ClickHouseUser {
	return []ClickHouseUser{
		{
			Name: UserOperator, Short: "jobs of gateways, and people's commands", Profile: profileParts,
			Grants: grants(stores(), knows("backups", "events", "merges"), []TableGrant{
				{"DROP TABLE, ALTER TABLE, CHECK, BACKUP", tablesOf},
				{"CREATE DATABASE, DROP DATABASE", schemas.RestoringDatabase(placeholder) + ".*"},
			}),
		},
		{
			Name: UserSink, Short: "sinks, with retention, rollups, seals and the keeper of the ledger beside them", Profile: profileParts,
			Grants: stores(),
		},
		{
			// Not the reader: its quotas are for statements that people type, which would leave none to pages.
			Name: UserGateway, Short: "pages, counts, tails, series and PromQL of gateways", Profile: profilePages,
			Grants: grants([]TableGrant{{"SELECT", tablesOf}}, knows("parts", "parts_columns", "columns", "tables", "databases", "processes", "disks", "storage_policies")),
		},
		{
			Name: UserReader, Short: "SQL that people type", Profile: profileReader,
			Grants:  grants([]TableGrant{{"SELECT", tablesOf}}, knows("parts", "parts_columns")),
			Revokes: []TableGrant{{"SELECT", placeholder + "." + schemas.TableLedger}}, // it names people who were erased
		},
	}
}

// stores is what it takes to make tables, to insert, to move shards to another volume, and to let rows go.
func stores() []TableGrant {
	return grants(
		[]TableGrant{
			{"SELECT, INSERT, CREATE DATABASE, CREATE TABLE, CREATE VIEW, DROP VIEW, ALTER ADD COLUMN, ALTER DELETE, ALTER UPDATE, ALTER MOVE PARTITION, ALTER SETTINGS, OPTIMIZE", tablesOf},
			// Of its own, while it works: tables of steps, and views that take the place of others.
			{"DROP TABLE", placeholder + "." + schemas.StepPrefix + "*"},
			{"DROP TABLE", placeholder + "." + schemas.ReplacePrefix + "*"},
			{"CREATE DATABASE", schemas.EngineDatabase(placeholder, "*") + ".*"},
		},
		engines("Atomic", "MergeTree", "ReplacingMergeTree", "AggregatingMergeTree", "Memory", "View"),
		knows("parts", "parts_columns", "columns", "tables", "databases", "processes", "settings", "mutations", "disks", "storage_policies"),
	)
}

// engines lets tables of these engines be made.
func engines(names ...string) (all []TableGrant) {
	for _, n := range names {
		all = append(all, TableGrant{"TABLE ENGINE", n})
	}
	return all
}

// knows lets tables of the server itself be read.
func knows(names ...string) (all []TableGrant) {
	for _, n := range names {
		all = append(all, TableGrant{"SELECT", "system." + n})
	}
	return all
}

func grants(lists ...[]TableGrant) (all []TableGrant) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// Statements are the grants and revokes as SQL, for databases of which a name may end in a star.
func (u *ClickHouseUser) Statements(databases []string) (all []string) {
	for _, l := range []struct {
		word   string
		grants []TableGrant
	}{{"GRANT ", u.Grants}, {"REVOKE ", u.Revokes}} {
		for _, g := range l.grants {
			for _, on := range g.in(databases) {
				all = append(all, l.word+g.Rights+" ON "+on)
			}
		}
	}
	return all
}

// in is what the grant is on in some databases. A star takes in the databases that name an engine.
func (g TableGrant) in(databases []string) (all []string) {
	if !strings.Contains(g.On, placeholder) {
		return []string{g.On}
	}
	for _, d := range databases {
		if strings.HasSuffix(d, "*") && !strings.HasPrefix(g.On, placeholder+".") {
			continue
		}
		on := g.On
		if strings.HasSuffix(d, "*") && strings.HasSuffix(on, "*") {
			on = tablesOf // ClickHouse takes one star, that of the databases or that of their tables
		}
		all = append(all, strings.Replace(on, placeholder, d, 1))
	}
	return all
}

// ClickHouseUserOf is the account of a name; nil: there is none.
func ClickHouseUserOf(name string) *ClickHouseUser {
	users := ClickHouseUsers()
	if i := slices.IndexFunc(users, func(u ClickHouseUser) bool { return u.Name == name }); i >= 0 {
		return &users[i]
	}
	return nil
}

// ClickHouseTable is what the accounts of ClickHouse may do, as a table in Markdown.
func ClickHouseTable() string {
	var b strings.Builder
	b.WriteString("| account | who | may | but not |\n|---|---|---|---|\n")
	users := ClickHouseUsers()
	for i := range users {
		u := &users[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", u.Name, u.Short, said(u.Grants), said(u.Revokes))
	}
	return b.String()
}

// said are grants in words: those of the same rights together.
func said(all []TableGrant) string {
	var rights []string
	on := map[string][]string{}
	for _, g := range all {
		if on[g.Rights] == nil {
			rights = append(rights, g.Rights)
		}
		on[g.Rights] = append(on[g.Rights], "`"+g.On+"`")
	}
	for i, r := range rights {
		rights[i] = r + " on " + strings.Join(on[r], ", ")
	}
	return strings.Join(rights, "; ")
}
