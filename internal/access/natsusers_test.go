package access_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/markdown"
	"github.com/almanac-events/almanac/schemas"
)

// SECURITY.md has the tables of the users, each between two marks. `make reference` writes them.
func TestSecurityHasTheUsers(t *testing.T) {
	t.Parallel()
	for _, section := range [][2]string{{"nats users", access.NATSTable()}, {"clickhouse users", access.ClickHouseTable()}, {"roles", access.RolesTable()}} {
		if err := markdown.Section("../../SECURITY.md", section[0], section[1], os.Getenv("ALMANAC_WRITE") != ""); err != nil {
			t.Errorf("%v: make reference", err)
		}
	}
}

// The table of roles has each action that a role or a client on loopback has, and no other.
func TestTableOfRolesHasAllActions(t *testing.T) {
	t.Parallel()
	var listed, had []access.Action
	for _, a := range access.Actions {
		listed = append(listed, a.Action)
	}
	for _, r := range access.Rights {
		had = append(had, r.Actions...)
	}
	had = append(had, access.OnLoopback...)
	slices.Sort(listed)
	slices.Sort(had)
	if had = slices.Compact(had); !slices.Equal(listed, had) {
		t.Errorf("listed are %q, and roles have %q", listed, had)
	}
	rows := strings.Split(strings.TrimSpace(access.RolesTable()), "\n")
	columns := len(access.Rights) + 3 // and a bar at the end
	for _, row := range rows {
		if n := strings.Count(row, "|"); n != columns {
			t.Errorf("%d bars, not %d: %s", n, columns, row)
		}
	}
	if len(rows) != len(listed)+2 {
		t.Errorf("%d rows", len(rows))
	}
}

// A part may do to a stream no more than its work asks for.
func TestNATSUsersDoNotExceedTheirWork(t *testing.T) {
	t.Parallel()
	for _, u := range access.NATSUsers() {
		purges := slices.ContainsFunc([]string{schemas.KVStream, schemas.CopiesStream}, func(s string) bool { return u.MayPublish("$JS.API.STREAM.PURGE." + s) })
		if purges != (u.Name == access.UserOperator) {
			t.Errorf("%s may purge the registry: %t", u.Name, purges)
		}
		for _, s := range access.Streams {
			if u.MayPublish("$JS.API.STREAM.DELETE." + s) {
				t.Errorf("%s may delete %s", u.Name, s)
			}
			if creates := u.MayPublish("$JS.API.STREAM.CREATE." + s); creates != (u.Name == access.UserOperator || u.Name == access.UserSetup) {
				t.Errorf("%s may create %s: %t", u.Name, s, creates)
			}
		}
		sends := u.Name == access.UserLocal || u.Name == access.UserProducer
		for _, subject := range []string{schemas.ShardSubject("app", 202611, 0), schemas.DeadSubject("app"), schemas.KVSubject(schemas.TopicKey("app")), "$JS.API.CONSUMER.CREATE.EVENTS.x"} {
			if sends && u.MayPublish(subject) {
				t.Errorf("%s may publish on %s", u.Name, subject)
			}
		}
		if asks := slices.Contains([]string{access.UserReader, access.UserGateway, access.UserSink}, u.Name); asks && !u.MayPublish(schemas.WaitingSubject("app")) {
			t.Errorf("%s, who reads what is fresh, may not say that it waits", u.Name)
		}
		if !u.MayPublish(schemas.EventsSubject("app", 202611, 0)) && sends {
			t.Errorf("%s may not send", u.Name)
		}
	}
}
