package access_test

import (
	"os"
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/markdown"
	"github.com/almanac-events/almanac/schemas"
)

// SECURITY.md has the tables of the users, each between two marks. `make reference` writes them.
func TestSecurityHasTheUsers(t *testing.T) {
	t.Parallel()
	for _, section := range [][2]string{{"nats users", access.NATSTable()}, {"clickhouse users", access.ClickHouseTable()}} {
		if err := markdown.Section("../../SECURITY.md", section[0], section[1], os.Getenv("ALMANAC_WRITE") != ""); err != nil {
			t.Errorf("%v: make reference", err)
		}
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
		if !u.MayPublish(schemas.EventsSubject("app", 202611, 0)) && sends {
			t.Errorf("%s may not send", u.Name)
		}
	}
}
