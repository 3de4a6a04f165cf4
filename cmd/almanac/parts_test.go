package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// apart are the parts of an Almanac as processes, each with a NATS user of its own.
type apart struct {
	t    *testing.T
	nats *configured
	srv  *embeddedtest.Servers // its ClickHouse
}

func newApart(t *testing.T) *apart {
	t.Helper()
	p := &apart{t: t, nats: newConfigured(t), srv: embeddedtest.Start(t, embeddedtest.WithoutNATS())}
	p.as(access.UserSetup).ok("", "setup", "--config", p.as(access.UserSetup).write("topics.yaml", "topics: [{name: app, sql_fresh: 1s}, {name: customers, kind: document}]\n"))
	return p
}

// as is a place to run commands as a user.
func (p *apart) as(user string) *box {
	return newBox(p.t, envPrefix+"NATS="+p.nats.login(user), envPrefix+"CLICKHOUSE="+p.srv.HTTPDSN(), envPrefix+"LOG_FORMAT=json", "ALMANAC_TIMERS_ALLOW_CIDRS=127.0.0.1/32:1-65535")
}

// part starts one.
func (p *apart) part(user string, args ...string) *daemon {
	d := p.as(user).background(args...)
	d.says(`"message":"ready"`)
	return d
}

// Each part does its work as its own user of NATS, and NATS refuses it nothing: an event, a dead letter, a document and a
// timer go their whole way, and every read is answered.
func TestPartsAsUsersOfTheirOwn(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer hook.Close()
	p := newApart(t)
	router := p.part(access.UserRouter, "router")
	sink := p.part(access.UserSink, "sink")
	dispatcher := p.part(access.UserTimers, "timers", "run")
	address := embeddedtest.FreeAddress(t)
	gateway := p.part(access.UserGateway, "gateway", "--http", address, "--otlp-http", "off", "--otlp-grpc", "off")

	token, err := os.ReadFile(filepath.Join(gateway.b.data(), embedded.LocalTokenName))
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode > 299 {
			t.Errorf("%s %s: %s %s %v", method, path, resp.Status, text, err)
		}
		return string(text)
	}
	p.as(access.UserProducer).ok("1\n2\n3\n", "send", "app")
	call(http.MethodPost, "/v1/topics/app/events?ack=stored", `{"message":"4"}`)
	call(http.MethodPut, "/v1/documents/customers/c1", `{"name":"Ada"}`)
	p.as(access.UserOperator).ok("", "timers", "groups", "apply", "mails", "--slots", "16")
	call(http.MethodPost, "/v1/timers/mails", fmt.Sprintf(`{"id":"x","executeAt":"+0s","callbackUrl":%q}`, hook.URL))
	embeddedtest.Eventually(t, maxWait, func() error {
		if calls.Load() == 0 {
			return errors.New("the timer was not called")
		}
		return nil
	})
	for _, path := range []string{"/v1/topics", "/v1/topics/app/events", "/v1/topics/app/count", "/v1/documents/customers/c1", "/v1/timers/mails/x", "/v1/lag", "/metrics"} {
		call(http.MethodGet, path, "")
	}
	embeddedtest.Eventually(t, maxWait, func() error { // it gives a busy server 2 s
		if code, body := asked(t, http.MethodGet, "http://"+address+"/readyz", ""); code != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		return nil
	})
	call(http.MethodPost, "/v1/verify", "")
	reader := p.as(access.UserReader)
	for _, verb := range []string{"query app", "query app --count", "shards", "topics ls", "dead ls", "erase ls", "docs ls customers", "docs get customers c1", "timers ls mails"} {
		reader.ok("", strings.Fields(verb)...)
	}
	if n := strings.TrimSpace(reader.ok("", "query", "app", "--count", "-o", "table")); n != "4" {
		t.Errorf("app has %s events, want 4", n)
	}
	p.as(access.UserOperator).ok("", "verify")
	p.as(access.UserOperator).examined()
	for _, d := range []*daemon{gateway, dispatcher, sink, router} {
		if code := d.stop(syscall.SIGTERM); code != 0 {
			t.Errorf("%v ended with %d: %s", d.cmd.Args, code, d.stderr())
		}
	}
	for _, line := range p.nats.refusals() {
		t.Error(line)
	}
}

// What needs more than a user has ends within the time that an answer may take, and names the user, the subject and the way out.
func TestVerbsThatAUserMayNot(t *testing.T) {
	t.Parallel()
	p := newApart(t)
	p.part(access.UserRouter, "router")
	p.part(access.UserSink, "sink")
	p.as(access.UserProducer).ok("1\n", "send", "app")
	for _, c := range []struct{ user, verb, subject string }{
		{access.UserReader, "verify app", "$KV.registry.PROOFS.app"},
		{access.UserReader, "doctor", "$JS.API.INFO"},
		{access.UserReader, "topics apply other", "$KV.registry.topics.other"},
		{access.UserProducer, "query app", "$JS.API.STREAM.INFO.EVENTS"},
	} {
		embeddedtest.Eventually(t, maxWait, func() error { // a busy server may not answer before the verb ends
			r := p.as(c.user).run("", strings.Fields(c.verb)...)
			for _, want := range []string{"the user " + c.user, `for Publish to "` + c.subject, "connect as"} {
				if r.code != exitFailed || !strings.Contains(r.out+r.err, want) {
					return fmt.Errorf("%s as %s: exit %d, and %q is awaited: %s%s", c.verb, c.user, r.code, want, r.out, r.err)
				}
			}
			if strings.Contains(r.out, "see that JetStream is on") || strings.Contains(r.out, "nothing is accepted") {
				t.Errorf("%s: %s", c.verb, r.out)
			}
			return nil
		})
	}
}
