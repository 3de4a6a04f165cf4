package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// removedRightsEnv has TestRemovedRights take each right of each part, and not some: all, or those whose subject has what it says.
const removedRightsEnv = "ALMANAC_REMOVED_RIGHTS"

// nameWithin is how soon a part says which right it lacks, and how soon doctor does, with the part's settings and with the operator's. A
// test waits longer for a busy machine, and prints what it took; make rights fails where one takes longer.
const nameWithin = 5 * time.Second

// inTime fails make rights where what was said took longer than nameWithin.
func inTime(t *testing.T, began time.Time, format string, args ...any) {
	t.Helper()
	took := time.Since(began).Round(10 * time.Millisecond)
	t.Logf("%s, after %s", fmt.Sprintf(format, args...), took)
	if os.Getenv(removedRightsEnv) != "" && took > nameWithin {
		t.Errorf("%s, after more than %s", fmt.Sprintf(format, args...), nameWithin)
	}
}

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
	wanted := os.Getenv(removedRightsEnv)
	if wanted == "" {
		return some
	}
	for _, u := range access.NATSUsers() {
		switch u.Name {
		case access.UserRouter, access.UserSink, access.UserTimers, access.UserGateway:
			for _, f := range u.Publish {
				if wanted != "all" && !strings.Contains(f, wanted) {
					continue
				}
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

// named checks that the lack is named before it hurts, as the line of the configuration: in the log of the part, by doctor with the
// part's own settings, and by that of the operator where the part may still tell it. The part began to be without at a time.
func (p *apart) named(r removedRight, part *daemon, began time.Time) {
	p.t.Helper()
	need := access.NATSUserOf(r.user)
	if r.filter == schemas.SubjectOwnRights || slices.ContainsFunc(need.Publish, func(f string) bool { return f != r.filter && schemas.CoversSubjects(f, r.filter) }) {
		return // it cannot ask, which the server refuses; or another right gives it the same
	}
	line := "publish allow " + strconv.Quote(r.filter)
	embeddedtest.Eventually(p.t, maxWait, func() error {
		if text := strings.ReplaceAll(part.stderr(), `\"`, `"`); !strings.Contains(text, line) {
			return fmt.Errorf("%s without %s does not say %s: %s", r.user, r.filter, line, text)
		}
		return nil
	})
	inTime(p.t, began, "%s without %s says that it lacks it", r.user, r.filter)
	if r.user == access.UserSink && os.Getenv(removedRightsEnv) == "" {
		return // doctor itself needs what the sink reads by, and waits for as long as it has
	}
	p.names(r.user, r.filter, line)
	if strings.HasPrefix(r.filter, schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, ""))) {
		return // it is by this that it tells others
	}
	asked := time.Now()
	embeddedtest.Eventually(p.t, maxWait, func() error {
		all := p.as(access.UserOperator).run("", "doctor")
		if text := strings.Join(strings.Fields(all.out), " "); !strings.Contains(text, "its user "+r.user+" lacks "+line) {
			return fmt.Errorf("the operator's doctor does not name what %s lacks: %s", r.user, text)
		}
		return nil
	})
	inTime(p.t, asked, "the operator's doctor says that %s lacks %s", r.user, r.filter)
}

// names checks that doctor with a user's own settings names the line that the user lacks, by its first answer but on a machine that is too busy
// for NATS to take its connection in time.
func (p *apart) names(user, right, line string) {
	p.t.Helper()
	asked := time.Now()
	embeddedtest.Eventually(p.t, maxWait, func() error {
		own := p.as(user).run("", "doctor")
		want := user + " may not do what the user " + user + " needs: it lacks " + line
		if text := strings.Join(strings.Fields(own.out), " "); !strings.Contains(text, want) {
			return fmt.Errorf("doctor of %s does not say %q: %s", user, want, text)
		}
		return nil
	})
	inTime(p.t, asked, "doctor of %s without %s answers", user, right)
}

// A part that lacks a right says so by user and subject. Or it does not need it to have what is sent stored. It is never
// silent, and goes on by itself once it has the right.
func TestRemovedRights(t *testing.T) {
	t.Parallel()
	rights := removedRights()
	if os.Getenv(removedRightsEnv) == "" {
		withoutEach(t, rights)
		return
	}
	of := map[string][]removedRight{}
	for _, r := range rights {
		of[r.user] = append(of[r.user], r)
	}
	for user, rights := range of { // each with servers of its own: there are hundreds
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			withoutEach(t, rights)
		})
	}
}

// withoutEach takes rights away, one after the other, from parts that work beside each other.
func withoutEach(t *testing.T, rights []removedRight) {
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
	for _, r := range rights {
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
				inTime(t, began, "%s without %s says so", r.user, r.filter)
				return nil
			}
			if err := stored(); err != nil || r.needed || time.Since(began) < nameWithin { // events may pass by a part that has just begun
				return errors.Join(err, fmt.Errorf("%s without %s says nothing: %s", r.user, r.filter, part.stderr()))
			}
			t.Logf("%s works without %s", r.user, r.filter)
			return nil
		})
		p.named(r, part, began)
		p.nats.whole()
		part.says(`"message":"ready"`)
		embeddedtest.Eventually(t, maxWait, stored)
		embeddedtest.Eventually(t, maxWait, func() error { // its lease says so by then
			if text := p.as(access.UserOperator).run("", "doctor").out; strings.Contains(text, "lacks") {
				return fmt.Errorf("%s has all its rights, and doctor says: %s", r.user, text)
			}
			return nil
		})
	}
}

// commanded are what people and applications do as a user that no part has, and rights that it takes.
var commanded = map[string]struct {
	verb   string
	filter []string
}{
	access.UserProducer: {"send app --timeout 1s", // it waits for as long: the right may come back
		[]string{schemas.SubjectsLanes, "$JS.API.STREAM.INFO." + schemas.KVStream}},
	access.UserReader: {"query app", []string{"$JS.API.STREAM.INFO." + schemas.StreamEvents}},
	access.UserSetup:  {"setup", []string{"$JS.API.STREAM.INFO." + schemas.StreamEvents}},
}

// A command whose user lacks a right does without, or ends and names user and subject; doctor with its settings names the line that
// is missing. The operator has one right, to everything. The user of clients without credentials may do what the producer's may, and is on the NATS of an up alone.
func TestRemovedRightsOfCommands(t *testing.T) {
	t.Parallel()
	p := newApart(t)
	p.part(access.UserRouter, "router")
	p.part(access.UserSink, "sink")
	if local, producer := access.NATSUserOf(access.UserLocal), access.NATSUserOf(access.UserProducer); !slices.Equal(local.Publish, producer.Publish) {
		t.Errorf("local publishes %v, the producer %v", local.Publish, producer.Publish)
	}
	for user, c := range commanded {
		filters := c.filter
		if os.Getenv(removedRightsEnv) != "" {
			filters = access.NATSUserOf(user).Publish
		}
		for _, filter := range filters {
			p.nats.without(user, filter)
			var r result
			embeddedtest.Eventually(t, maxWait, func() error { // a busy server may end it before it knows why
				began := time.Now()
				r = p.as(user).run("x\n", strings.Fields(c.verb)...)
				inTime(t, began, "%s as %s without %s: exit %d", c.verb, user, filter, r.code)
				said := strings.ReplaceAll(r.out+r.err, `\"`, `"`)
				_, subject, ok := strings.Cut(said, `Permissions Violation for Publish to "`)
				subject, _, _ = strings.Cut(subject, `"`)
				ok = ok && strings.Contains(said, "the user "+user) && schemas.MatchesSubject(filter, subject)
				if r.code != exitOK && !ok && !strings.Contains(said, "the NATS user "+user+" lacks publish allow "+strconv.Quote(filter)) {
					return fmt.Errorf("%s as %s without %s: exit %d: %s%s", c.verb, user, filter, r.code, r.out, r.err)
				}
				return nil
			})
			if r.code == exitOK && slices.Contains(c.filter, filter) {
				t.Errorf("%s works as %s without %s", c.verb, user, filter)
			}
			if filter == schemas.SubjectOwnRights || slices.ContainsFunc(access.NATSUserOf(user).Publish, func(f string) bool { return f != filter && schemas.CoversSubjects(f, filter) }) {
				p.nats.whole()
				continue
			}
			p.names(user, filter, "publish allow "+strconv.Quote(filter))
			p.nats.whole()
		}
	}
}
