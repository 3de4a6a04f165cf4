package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// removedRightsEnv has TestRemovedRights take each right of each part, and not some.
const removedRightsEnv = "ALMANAC_REMOVED_RIGHTS"

// nameWithin is how soon a part says which right it lacks. A test waits longer for a busy machine, and prints what it took.
const nameWithin = 5 * time.Second

// removedRight is a right that a part is without. needed: what the part does from its start on asks for it.
type removedRight struct {
	user, filter string
	needed       bool
}

func removedRights() (all []removedRight) {
	some := []removedRight{
		{access.UserRouter, schemas.SubjectsShards, true},
		{access.UserSink, "$JS.API.DIRECT.GET.SHARDS", true},
		{access.UserTimers, schemas.KVSubject(schemas.LeaseKey(schemas.RoleTimers, "*")), true},
		{access.UserGateway, "$JS.API.STREAM.INFO." + schemas.KVStream, true},
	}
	if os.Getenv(removedRightsEnv) == "" {
		return some
	}
	for _, u := range access.NATSUsers() {
		switch u.Name {
		case access.UserRouter, access.UserSink, access.UserTimers, access.UserGateway:
			for _, f := range u.Publish {
				r := removedRight{user: u.Name, filter: f}
				for _, s := range some {
					if s.user == r.user && s.filter == f {
						r.needed = s.needed
					}
				}
				all = append(all, r)
			}
		}
	}
	return all
}

// A part that lacks a right says so by user and subject. Or it does not need it to have what is sent stored. It is never
// silent, and goes on by itself once it has the right.
func TestRemovedRights(t *testing.T) {
	t.Parallel()
	p := newApart(t)
	commands := map[string][]string{access.UserRouter: {"router"}, access.UserSink: {"sink"}, access.UserTimers: {"timers", "run"}, access.UserGateway: {"gateway", "--http", "off", "--otlp-http", "127.0.0.1:0", "--otlp-grpc", "off"}}
	running := map[string]*daemon{}
	for user, args := range commands {
		running[user] = p.part(user, args...)
	}
	sender, db := p.as(access.UserProducer), p.srv.SQL()
	sent := 0
	stored := func() error {
		n := 0
		if err := db.QueryRowContext(t.Context(), "SELECT count() FROM app").Scan(&n); err != nil || n != sent {
			return fmt.Errorf("%d of %d are stored: %w", n, sent, err)
		}
		return nil
	}
	for _, r := range removedRights() {
		running[r.user].stop(syscall.SIGKILL)
		p.nats.without(r.user, r.filter)
		began := time.Now()
		part := p.as(r.user).background(commands[r.user]...)
		running[r.user] = part
		sender.ok("x\n", "send", "app")
		sent++
		said := func() bool {
			for line := range strings.Lines(part.stderr()) {
				line = strings.ReplaceAll(line, `\"`, `"`)
				_, subject, ok := strings.Cut(line, "the user "+r.user+`: Permissions Violation for Publish to "`)
				subject, _, _ = strings.Cut(subject, `"`)
				if ok && schemas.MatchesSubject(r.filter, subject) {
					return true
				}
			}
			return false
		}
		embeddedtest.Eventually(t, maxWait, func() error {
			if said() {
				t.Logf("%s without %s says so after %s", r.user, r.filter, time.Since(began).Round(10*time.Millisecond))
				return nil
			}
			if err := stored(); err != nil || time.Since(began) < nameWithin {
				return errors.Join(err, fmt.Errorf("%s without %s says nothing: %s", r.user, r.filter, part.stderr()))
			}
			t.Logf("%s works without %s", r.user, r.filter)
			if r.needed {
				t.Errorf("%s works without %s", r.user, r.filter)
			}
			return nil
		})
		p.nats.whole()
		part.says(`"message":"ready"`)
		embeddedtest.Eventually(t, maxWait, stored)
	}
}
