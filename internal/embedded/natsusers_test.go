package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// somewhere makes a subject of a filter.
func somewhere(filter string) string {
	return strings.NewReplacer("*", "x", ">", "x.y").Replace(filter)
}

// subjects are one that each filter of the table matches, and what only the operator may publish.
func subjects() []string {
	out := []string{"other", "$JS.API.STREAM.DELETE." + schemas.StreamEvents, "$JS.API.STREAM.PURGE." + schemas.KVStream, schemas.InboxPrefix("") + ".x.y"}
	for _, u := range access.NATSUsers() {
		for _, f := range slices.Concat(u.Publish, u.Deny) {
			if f != ">" {
				out = append(out, somewhere(f))
			}
		}
		out = append(out, schemas.InboxPrefix(u.Name)+".x")
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(s string) bool { return s == forbidden })
}

// forbidden is a subject that no user may publish on.
const forbidden = "$JS.API.STREAM.DELETE." + schemas.CopiesStream

// as connects as a user; empty: without credentials.
func as(t *testing.T, url, user string) (nc *nats.Conn, violations chan error) {
	t.Helper()
	violations = make(chan error, 1000)
	opts := []nats.Option{nats.Timeout(20 * time.Second), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			violations <- err
		}
	})}
	if user != access.UserLocal {
		opts = append(opts, nats.UserInfo(user, "of "+user))
	}
	nc, err := nats.Connect(url, append(opts, schemas.OwnInbox)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc, violations
}

func passwords() map[string]string {
	p := map[string]string{}
	for _, u := range access.NATSUsers() {
		p[u.Name] = "of " + u.Name
	}
	return p
}

// refused publishes and subscribes on each subject, and returns what the server refused.
func refused(t *testing.T, nc *nats.Conn, violations chan error, all []string) (publish, subscribe map[string]bool) {
	t.Helper()
	publish, subscribe = map[string]bool{}, map[string]bool{}
	for _, s := range all {
		if err := nc.Publish(s, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.SubscribeSync(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Publish(forbidden, nil); err != nil {
		t.Fatal(err)
	}
	for { // the server refuses in the order it was asked
		select {
		case err := <-violations:
			text := err.Error()
			subject := text[strings.Index(text, `"`)+1 : strings.LastIndex(text, `"`)]
			switch {
			case subject == forbidden:
				return publish, subscribe
			case strings.Contains(text, "Violation for Publish"):
				publish[subject] = true
			default:
				subscribe[subject] = true
			}
		case <-time.After(time.Minute):
			t.Fatalf("the server did not refuse %s", forbidden)
		}
	}
}

// Each user may do on a server exactly what the table says.
func TestNATSUsersAreTheTable(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithNATSConfig(func(c *embedded.NATSConfig) { c.Passwords = passwords() }))
	all := subjects()
	for _, u := range access.NATSUsers() {
		nc, violations := as(t, s.NATSURL, u.Name)
		publish, subscribe := refused(t, nc, violations, all)
		allow, deny := u.Subscribes()
		hears := access.NATSUser{Publish: allow, Deny: deny}
		for _, subject := range all {
			if got, want := !publish[subject], u.MayPublish(subject); got != want {
				t.Errorf("%s publishes on %s: %t, the table says %t", u.Name, subject, got, want)
			}
			if got, want := !subscribe[subject], hears.MayPublish(subject); got != want {
				t.Errorf("%s subscribes to %s: %t, the table says %t", u.Name, subject, got, want)
			}
		}
	}
}

// What `almanac config nats` prints makes the same users as an up has.
func TestNATSConfigIsTheTable(t *testing.T) {
	for user := range passwords() {
		t.Setenv(access.NATSPasswordKey(user), "of-"+user)
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(access.NATSConfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]*server.User{}
	for _, u := range o.Users {
		got[u.Username] = u
	}
	for _, u := range access.NATSUsers() {
		if u.Name == access.UserLocal {
			if got[u.Name] != nil {
				t.Errorf("%s is in the configuration of a server elsewhere", u.Name)
			}
			continue
		}
		x := got[u.Name]
		if x == nil || x.Password != "of-"+u.Name {
			t.Fatalf("%s: %+v", u.Name, x)
		}
		if account := map[bool]string{true: u.Name, false: access.NATSAccount}[u.Apart]; x.Account == nil || x.Account.Name != account {
			t.Errorf("%s is not in the account %s", u.Name, account)
		}
		allow, deny := u.Subscribes()
		have := fmt.Sprint(x.Permissions.Publish.Allow, x.Permissions.Publish.Deny, x.Permissions.Subscribe.Allow, x.Permissions.Subscribe.Deny, x.Permissions.Response != nil)
		if want := fmt.Sprint(u.Publish, u.Deny, allow, deny, u.Answers); have != want {
			t.Errorf("%s:\n have %s\n want %s", u.Name, have, want)
		}
		if u.Answers && !reflect.DeepEqual(*x.Permissions.Response, server.ResponsePermission{MaxMsgs: server.DEFAULT_ALLOW_RESPONSE_MAX_MSGS, Expires: server.DEFAULT_ALLOW_RESPONSE_EXPIRATION}) {
			t.Errorf("%s answers %+v", u.Name, *x.Permissions.Response)
		}
	}
}

// Clients without credentials cannot take the connections of parts and commands.
func TestSendersConnections(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithNATSConfig(func(c *embedded.NATSConfig) { c.Passwords = passwords() }))
	connect := func(opts ...nats.Option) error {
		nc, err := nats.Connect(s.NATSURL, append(opts, nats.NoReconnect(), nats.Timeout(time.Minute))...)
		if err == nil {
			t.Cleanup(nc.Close)
		}
		return err
	}
	for n := range embedded.SenderConns {
		if err := connect(); err != nil {
			t.Fatalf("connection %d: %v", n, err)
		}
	}
	if err := connect(); !errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) {
		t.Errorf("one more: %v", err)
	}
	for _, user := range []string{access.UserOperator, access.UserProducer, access.UserSink} {
		if err := connect(nats.UserInfo(user, "of "+user)); err != nil {
			t.Errorf("%s cannot connect beside them: %v", user, err)
		}
	}
}
