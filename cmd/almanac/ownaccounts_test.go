package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
)

// ownEngine is a ClickHouse whose accounts the test may change.
func ownEngine(t *testing.T) *embeddedtest.Servers {
	t.Helper()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	twin := srv.Twin()
	srv.Engine, srv.ClickHouseHTTP, srv.Database = twin, twin.HTTPURL(), twin.Database()
	return srv
}

// Of each right of each account one is taken away at a time: what a part asks by names it, once in its log, and so does doctor. With
// the grants that `almanac config clickhouse` prints they say nothing.
func TestEachGrantThatIsGoneIsNamed(t *testing.T) {
	t.Parallel()
	srv := ownEngine(t)
	open := func(user string) *tables.DB {
		db, err := tables.Open(srv.HTTPDSNOf(user))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	operator := open(access.UserOperator)
	reader, password := srv.Engine.Account(access.UserReader)
	for _, u := range access.ClickHouseUsers() {
		t.Run(u.Name, func(t *testing.T) {
			db := open(u.Name)
			examined := doctor.Config{
				OpenNATS: func(context.Context, time.Duration) (*nats.Conn, *registry.Registry, error) {
					return nil, nil, errors.New("none")
				},
				OpenTables: func() (*tables.DB, error) { return db, nil },
			}
			asks := grantsOf(db, &u)
			switch u.Name {
			case access.UserReader:
				asks = grantsOfReader(operator, reader, password)
				examined.OpenTables, examined.ReaderUser, examined.ReaderPassword = func() (*tables.DB, error) { return operator, nil }, reader, password
			case access.UserGateway:
				examined.OpenTables, examined.OpenGatewayTables = func() (*tables.DB, error) { return operator, nil }, func() (*tables.DB, error) { return tables.Open(srv.HTTPDSNOf(u.Name)) }
			}
			var log bytes.Buffer
			own := newOwnAccounts("a part", zerolog.New(&log))
			own.of("clickhouse", asks)
			lacking := func() string {
				var all []string
				for _, f := range doctor.Run(t.Context(), examined) {
					if f.Check == "ClickHouse account" && f.Status == doctor.Fail {
						all = append(all, f.Found+" → "+f.Do)
					}
				}
				return strings.Join(all, "\n")
			}
			own.look(t.Context())
			if said := fmt.Sprint(own.trouble(), log.String(), lacking()); own.all[0].found.Load() == nil || strings.Contains(said, "lacks") {
				t.Fatalf("with all of its rights: %s", said)
			}
			whole := u.Statements([]string{db.Database})
			for _, right := range u.Rights(db.Database) {
				log.Reset()
				embeddedtest.Grants(t, srv.Engine, u.Name, append(whole, "REVOKE "+right.String())...)
				says := func(what, text string) error {
					if !strings.Contains(text+";", right.String()+";") && !strings.Contains(text+" →", right.String()+" →") || !strings.Contains(text, "grant "+u.Name+" what it lacks") {
						return fmt.Errorf("%s does not name %s: %s", what, right, text)
					}
					return nil
				}
				embeddedtest.Eventually(t, maxWait, func() error {
					own.look(t.Context())
					return says("the part", strings.ReplaceAll(fmt.Sprint(own.trouble()), ": grant", "; grant"))
				})
				own.look(t.Context())
				if n := strings.Count(log.String(), `"error"`); n != 1 || !strings.Contains(log.String(), right.String()) || !strings.Contains(log.String(), u.Name) {
					t.Errorf("%s: %d errors: %s", right, n, log.String())
				}
				if err := says("doctor", lacking()); err != nil {
					t.Error(err)
				}
			}
			embeddedtest.Grants(t, srv.Engine, u.Name, whole...)
			embeddedtest.Eventually(t, maxWait, func() error {
				own.look(t.Context())
				if said := fmt.Sprint(own.trouble(), lacking()); strings.Contains(said, "lacks") {
					return errors.New(said)
				}
				return nil
			})
		})
	}
}

// A sink and a gateway whose accounts lack a grant name it in their logs and at /readyz, and the operator's doctor names both: where
// they are started without, and where it is taken away while they run. They say nothing of it, and work, once the accounts have it.
func TestPartsNameGrantsThatAreGone(t *testing.T) {
	t.Parallel()
	p := &apart{t: t, nats: newConfigured(t), srv: ownEngine(t)}
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
		embeddedtest.Grants(t, p.srv.Engine, account, append(whole(account), "REVOKE "+right)...)
	}
	hasAll := func(account string) { embeddedtest.Grants(t, p.srv.Engine, account, whole(account)...) }
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
			if len(words) == 0 && strings.Contains(text, "lacks") {
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
	own := as(access.UserSink, access.UserSink).run("", "doctor")
	contains(t, strings.Join(strings.Fields(own.out), " "), "sink may not do what the account sink needs: it lacks "+insert, "grant sink what it lacks, or take the account sink of `almanac config clickhouse`")
	embeddedtest.Eventually(t, maxWait, func() error {
		now, err := ops.Ask(t.Context(), "http://"+at)
		if said := fmt.Sprint(now.Reasons, now.Impaired); !strings.Contains(said, insert) {
			return fmt.Errorf("the sink's readiness does not name %s: %s %w", insert, said, err)
		}
		return nil
	})

	p.as(access.UserProducer).ok("1\n2\n", "send", "app")
	hasAll(access.UserSink)
	hasAll(access.UserGateway)
	sink.says("the account has all rights that it needs")
	gateway.says("the account has all rights that it needs")
	doctorSays()
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
