package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// Beside tables that have rows no empty registry is made, until it is said that theirs was lost; then repair fills it, and what was
// stored is proven.
func TestSetupWithALostRegistry(t *testing.T) {
	t.Parallel()
	p := newApart(t)
	router, sink := p.part(access.UserRouter, "router"), p.part(access.UserSink, "sink")
	p.as(access.UserProducer).ok("1\n2\n3\n", "send", "app")
	embeddedtest.Eventually(t, maxWait, func() error {
		n := 0
		if err := p.srv.SQL().QueryRowContext(t.Context(), "SELECT count() FROM app").Scan(&n); err != nil || n != 3 {
			return fmt.Errorf("%d of 3 are stored: %w", n, err)
		}
		return nil
	})
	p.as(access.UserSetup).ok("", "setup") // it knows its tables
	for _, d := range []*daemon{router, sink} {
		d.stop(syscall.SIGTERM)
	}
	if _, err := p.srv.SQL().ExecContext(t.Context(), "DROP TABLE IF EXISTS "+schemas.TableLedger+" SYNC"); err != nil { // a sink that ran for a while made it
		t.Fatal(err)
	}
	p.nats = newConfigured(t)
	asSink := p.as(access.UserSetup) // as where it is deployed
	asSink.env = append(asSink.env, envPrefix+"CLICKHOUSE="+p.srv.HTTPDSNOf(access.UserSink))
	r := asSink.run("", "setup")
	if r.code != exitFailed {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.err, "the registry is lost", "has rows of app", "almanac setup --registry-lost", "almanac repair")
	if out := p.as(access.UserOperator).run("", "topics", "ls"); out.code == exitOK {
		t.Errorf("a registry was made: %s", out.out)
	}
	p.as(access.UserSetup).ok("", "setup", "--registry-lost")
	r = p.as(access.UserOperator).run("", "repair")
	if r.code != exitPartial {
		t.Errorf("repair: exit %d: %s%s", r.code, r.out, r.err)
	}
	contains(t, r.out+r.err, "almanac repair --nothing-erased") // ClickHouse has no copy of a ledger either
	p.as(access.UserOperator).ok("", "repair", "--nothing-erased")
	if out := p.as(access.UserOperator).ok("", "topics", "ls"); !strings.Contains(out, "app") {
		t.Errorf("repair restored no topic: %s", out)
	}
	if n := strings.TrimSpace(p.as(access.UserReader).ok("", "query", "app", "--count", "-o", "table")); n != "3" {
		t.Errorf("app has %s events, want 3", n)
	}
	p.as(access.UserOperator).ok("", "verify")
	p.as(access.UserSetup).ok("", "setup")
}
