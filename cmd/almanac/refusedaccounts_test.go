package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/ops"
)

// A gateway whose accounts ClickHouse refuses takes events and is ready, and names each of them, as doctor does. A sink, which does
// nothing without, is not ready and names its own.
func TestRefusedAccounts(t *testing.T) {
	t.Parallel()
	p := newApart(t)
	wrong, err := url.Parse(p.srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	right := wrong.User
	wrong.User = url.UserPassword(right.Username(), "wrong")
	as := func(user, dsn string) *box {
		b := p.as(user)
		b.env = append(b.env, envPrefix+"CLICKHOUSE="+dsn, envPrefix+"CLICKHOUSE_READS=reader:wrong", envPrefix+"CLICKHOUSE_READER=reader:wrong")
		return b
	}
	says := func(b *box, address string, ready bool, words ...string) {
		t.Helper()
		embeddedtest.Eventually(t, maxWait, func() error {
			now, err := ops.Ask(t.Context(), "http://"+address)
			text := fmt.Sprint(now.Reasons, now.Impaired)
			for _, w := range words {
				if !strings.Contains(text, w) {
					return fmt.Errorf("it does not say %q: %s %w", w, text, err)
				}
			}
			if now.Ready != ready {
				return fmt.Errorf("ready is %v: %s %w", now.Ready, text, err)
			}
			return nil
		})
		embeddedtest.Eventually(t, maxWait, func() error {
			if r := b.run("", "ready", "--http", address); (r.code == exitOK) != ready || !strings.Contains(r.out, string(ops.Unaccepted)) {
				return fmt.Errorf("ready: exit %d: %s%s", r.code, r.out, r.err)
			}
			return nil
		})
	}
	gateway := as(access.UserGateway, wrong.String())
	at := embeddedtest.FreeAddress(t)
	gateway.background("gateway", "--http", at, "--otlp-http", "off", "--otlp-grpc", "off").says(`"message":"ready"`)
	says(gateway, at, true, `the account "`+right.Username()+`" of the setting clickhouse,`, `the account "reader" of the setting clickhouse_reads`, `the account "reader" of the setting clickhouse_reader`)
	resp, err := http.Post("http://"+at+"/v1/topics/app/events", "application/x-ndjson", strings.NewReader("{\"message\":\"x\"}\n"))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("an event: %v, %v", resp, err)
	}
	if err == nil {
		_ = resp.Body.Close()
	}

	sink := as(access.UserSink, wrong.String())
	at = embeddedtest.FreeAddress(t)
	sink.background("sink", "--http", at)
	says(sink, at, false, "account_refused", right.Username(), "almanac config clickhouse")

	as(access.UserOperator, wrong.String()).diagnosed(exitFailed, "Authentication failed", "correct the account or its password in the setting clickhouse")
	as(access.UserOperator, p.srv.HTTPDSN()).diagnosed(exitFailed, "ClickHouse refuses the account of clickhouse_reads", "SQL account")
}
