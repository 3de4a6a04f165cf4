package embeddedtest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/schemas"
)

// WithUsers gives the NATS server Almanac's users (access.NATSUsers). NC is the operator's then, and As gives the
// connections of others. The test fails if the server refuses anything to a user that is not among these.
func WithUsers(refused ...string) Option {
	return func(o *options) { o.users, o.refused = true, refused }
}

// usersWanted has all tests of a run use users: ALMANAC_NATS_USERS=1.
func usersWanted() bool { return os.Getenv("ALMANAC_NATS_USERS") != "" }

// Passwords are those of the users of WithUsers.
func Passwords() map[string]string {
	all := map[string]string{}
	for _, u := range access.NATSUsers() {
		all[u.Name] = "of " + u.Name
	}
	return all
}

// As are the options of a connection as a user, and with WithUsers alone its credentials: elsewhere everybody may do everything.
func (s *Servers) As(user string) []nats.Option {
	if !s.users {
		return nil
	}
	if user == access.UserLocal {
		return []nats.Option{schemas.OwnInbox}
	}
	return []nats.Option{nats.UserInfo(user, Passwords()[user]), schemas.OwnInbox}
}

// Dial connects as a user, until the end of the test.
func (s *Servers) Dial(user string) *nats.Conn {
	s.t.Helper()
	opts := append(s.As(user), nats.Timeout(startTimeout), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	nc, err := nats.Connect(s.NATSURL, opts...)
	if err != nil {
		s.t.Fatalf("connecting to the test's NATS as %s: %v", user, err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// withUsers makes the server have users, and its refusals failures of the test.
func withUsers(t testing.TB, cfg *embedded.NATSConfig, refused []string) {
	cfg.Passwords = Passwords()
	log := cfg.Log
	cfg.Log = func(level embedded.Level, part, text string) {
		if strings.Contains(text, "Violation") && t.Context().Err() == nil && !slices.ContainsFunc(refused, func(u string) bool { return strings.Contains(text, "user:"+u+"\"") }) {
			t.Error(text)
		}
		if log != nil {
			log(level, part, text)
		}
	}
}
