package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/doctor"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// withoutOne are the accounts of Almanac, each as often as it has rights, without one of them.
func withoutOne() (all []access.ClickHouseUser, gone map[string]access.SingleGrant) {
	gone = map[string]access.SingleGrant{}
	for _, u := range access.ClickHouseUsers() {
		for i, right := range u.Rights(schemas.DefaultDatabase) {
			one := u
			one.Name = fmt.Sprintf("%s_without_%d", u.Name, i)
			one.Revokes = append(slices.Clone(u.Revokes), right.TableGrant)
			all, gone[one.Name] = append(all, one), right
		}
	}
	return all, gone
}

// givenAnyway says that ClickHouse gives an account a right that none of its grants names: what all may read of the server, and what
// goes with other rights.
func givenAnyway(account string, right access.SingleGrant) bool {
	switch right.Rights {
	case "SELECT":
		return slices.Contains([]string{"system.databases", "system.tables", "system.columns", "system.settings"}, right.On)
	case "CREATE VIEW", "ALTER MOVE PARTITION": // with CREATE TABLE; with INSERT and ALTER DELETE
		return true
	case "DROP VIEW": // with DROP TABLE
		return account == access.UserOperator
	}
	return false
}

// examinedOf is of how many rights doctor is asked about one: it looks at all else too, and asks about rights as a part does.
const examinedOf = 10

// Of each right of each account one is taken away at a time: what a part asks by names it, once in its log, and so does doctor, each
// with what to do. They say nothing where none is missing.
func TestEachGrantThatIsGoneIsNamed(t *testing.T) {
	t.Parallel()
	accounts, gone := withoutOne()
	srv := embeddedtest.StartOwn(t, accounts...)
	open := func(user string) *tables.DB {
		db, err := tables.Open(srv.HTTPDSNOf(user))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	operator := open(access.UserOperator)
	for n, u := range append(accounts, access.ClickHouseUsers()...) {
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			of, _, _ := strings.Cut(u.Name, "_")
			name, password := srv.Engine.Account(u.Name)
			db := open(name)
			examined := doctor.Config{
				OpenNATS: func(context.Context, time.Duration) (*nats.Conn, *registry.Registry, error) {
					return nil, nil, errors.New("none")
				},
				OpenTables: func() (*tables.DB, error) { return operator, nil },
			}
			asks := grantsOf(db, access.ClickHouseUserOf(of))
			switch of {
			case access.UserReader:
				asks = grantsOfReader(operator, name, password)
				examined.ReaderUser, examined.ReaderPassword = name, password
			case access.UserGateway:
				examined.OpenGatewayTables = func() (*tables.DB, error) { return tables.Open(srv.HTTPDSNOf(name)) }
			default: // a sink's under another name is compared with the operator
				examined.OpenTables = func() (*tables.DB, error) { return db, nil }
			}
			var log bytes.Buffer
			own := newOwnAccounts("a part", zerolog.New(&log))
			own.wait = maxWait
			own.of("clickhouse", asks)
			right, lacks := gone[u.Name]
			lacks = lacks && !givenAnyway(of, right)
			embeddedtest.Eventually(t, maxWait, func() error { // each has little time to answer
				own.look(t.Context())
				if own.all[0].found.Load() == nil {
					return errors.New("ClickHouse did not answer")
				}
				if part := fmt.Sprint(own.trouble()); names(part, name, right) != lacks || !lacks && strings.Contains(part, "lacks") {
					return fmt.Errorf("the part says of %s: %s", right, part)
				}
				return nil
			})
			own.look(t.Context())
			var errored []string // one, or more where ClickHouse was slow: first what was found in time, then all
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, `"level":"error"`) {
					errored = append(errored, line)
				}
			}
			last := strings.Join(errored[max(0, len(errored)-1):], "")
			if lacks && (!strings.Contains(last, `"`+right.String()+`"`) || !strings.Contains(last, `"`+name+`"`)) || !lacks && last != "" || len(slices.Compact(errored)) < strings.Count(log.String(), `"level":"error"`) {
				t.Errorf("%d errors: %s", len(errored), log.String())
			}
			if n%examinedOf > 0 && len(gone[u.Name].On) > 0 || of == access.UserSink && name != of && !lacks {
				return
			}
			embeddedtest.Eventually(t, maxWait, func() error {
				said, all := "", doctor.Run(t.Context(), examined)
				answered := 0
				for _, f := range all {
					if f.Check == "ClickHouse account" {
						answered++
						if f.Status == doctor.Fail {
							said += f.Found + ": " + f.Do + "\n"
						}
					}
				}
				if answered == 0 || names(said, name, right) != lacks || !lacks && strings.Contains(said, "lacks") {
					return fmt.Errorf("doctor says of %s: %s %v", right, said, all)
				}
				return nil
			})
		})
	}
}

// names reports whether a text names the right that an account lacks, and what to do.
func names(text, account string, right access.SingleGrant) bool {
	return (strings.Contains(text, " "+right.String()+"; ") || strings.Contains(text, " "+right.String()+": ")) &&
		strings.Contains(text, "grant "+account+" what it lacks") && strings.Contains(text, "`almanac config clickhouse`")
}

// A sink and a gateway whose accounts lack a grant name it in their logs and at /readyz, and the operator's doctor names both: where
// they are started without, and where it is taken away while they run. They say nothing of it, and work, once the accounts have it.
func TestPartsNameGrantsThatAreGone(t *testing.T) {
	t.Parallel()
	p := &apart{t: t, nats: newConfigured(t), srv: embeddedtest.StartOwn(t)}
	set := p.as(access.UserSetup)
	set.ok("", "setup", "--config", set.write("topics.yaml", "topics: [{name: app, sql_fresh: 1s}]\n"))
	as := func(user, account string, more ...string) *box {
		b := p.as(user)
		b.env = append(append(b.env, envPrefix+"CLICKHOUSE="+p.srv.HTTPDSNOf(account)), more...)
		return b
	}
	database := p.srv.Database
	whole := func(account string) []string { return access.ClickHouseUserOf(account).Statements([]string{database}) }
	lacks := func(account, right string) {
		p.srv.Regrant(account, append(whole(account), "REVOKE "+right)...)
	}
	hasAll := func(account string) { p.srv.Regrant(account, whole(account)...) }
	operator := as(access.UserOperator, access.UserOperator)
	doctorSays := func(words ...string) {
		t.Helper()
		embeddedtest.Eventually(t, maxWait, func() error {
			text := strings.Join(strings.Fields(operator.run("", "doctor").out), " ")
			for _, w := range words {
				if !strings.Contains(text, w) {
					return fmt.Errorf("doctor does not say %q: %s", w, text)
				}
			}
			if len(words) == 0 && (strings.Contains(text, "lacks") || !strings.Contains(text, "ClickHouse")) {
				return fmt.Errorf("doctor says: %s", text)
			}
			return nil
		})
	}
	insert, pages := "INSERT ON "+database+".*", "SELECT ON system.parts"

	lacks(access.UserSink, insert)
	router := p.as(access.UserRouter).background("router")
	at := embeddedtest.FreeAddress(t)
	sink := as(access.UserSink, access.UserSink).background("sink", "--http", at)
	sink.says("clickhouse: the account may not do what this part needs")
	sink.says(insert)
	reads, password := p.srv.Engine.Account(access.UserGateway)
	gateway := as(access.UserGateway, access.UserOperator, envPrefix+"CLICKHOUSE_READS="+reads+":"+password).background("gateway", "--http", "off", "--otlp-http", "127.0.0.1:0", "--otlp-grpc", "off")
	gateway.says(`"message":"ready"`)
	lacks(access.UserGateway, pages)
	gateway.says(pages)
	doctorSays("its account sink may not do what the account sink needs: it lacks "+insert, "gateway, ", "its account gateway may not do what the account gateway needs: it lacks "+pages)
	as(access.UserSink, access.UserSink).diagnosed(anyCode, "sink may not do what the account sink needs: it lacks "+insert, "grant sink what it lacks, or take the account sink of `almanac config clickhouse`")
	embeddedtest.Eventually(t, maxWait, func() error {
		now, err := ops.Ask(t.Context(), "http://"+at)
		if said := fmt.Sprint(now.Reasons, now.Impaired); !strings.Contains(said, insert) {
			return fmt.Errorf("the sink's readiness does not name %s: %s %w", insert, said, err)
		}
		return nil
	})

	hasAll(access.UserSink)
	hasAll(access.UserGateway)
	sink.says("the account has all rights that it needs")
	gateway.says("the account has all rights that it needs")
	doctorSays()
	p.as(access.UserProducer).ok("1\n2\n", "send", "app")
	embeddedtest.Eventually(t, maxWait, func() error {
		if r := operator.run("", "query", "app", "--count", "-o", "table"); strings.TrimSpace(r.out) != "2" {
			return fmt.Errorf("%s%s", r.out, r.err)
		}
		return nil
	})
	for _, d := range []*daemon{gateway, sink, router} {
		d.stop(syscall.SIGTERM)
	}
}
