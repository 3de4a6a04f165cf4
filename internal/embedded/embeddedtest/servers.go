package embeddedtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
)

// Servers are what one test works with.
type Servers struct {
	// NATS is this test's own server; nil with WithoutNATS.
	NATS *embedded.NATS
	// NATSURL of that server.
	NATSURL string

	// Engine is the ClickHouse all tests of the binary share: do not stop it. Nil with WithoutClickHouse.
	Engine *embedded.ClickHouse
	// ClickHouseHTTP is the base URL of its HTTP interface, without credentials.
	ClickHouseHTTP string
	// ClickHouseTCP is host:port of its native protocol.
	ClickHouseTCP string
	// DSN for clickhouse-go: native protocol, this test's database.
	DSN string
	// ReaderDSN is the same as embedded.UserReader.
	ReaderDSN string
	// User and Password of DSN: they may do everything.
	User, Password string
	// Database of this test: Atomic, empty at its start, dropped at its end.
	Database string

	t     testing.TB
	users bool
	mu    sync.Mutex
	nc    *nats.Conn
}

type options struct {
	nats, clickhouse, sync, users bool
	refused                       []string
	natsConfig                    func(*embedded.NATSConfig)
}

// Option changes what Start starts.
type Option func(*options)

// WithoutNATS is for tests that need only ClickHouse.
func WithoutNATS() Option { return func(o *options) { o.nats = false } }

// WithoutClickHouse is for tests that need only NATS; they run where no engine is.
func WithoutClickHouse() Option { return func(o *options) { o.clickhouse = false } }

// WithSync makes NATS write to disk before it acknowledges, as in production. Tests are faster without.
func WithSync() Option { return func(o *options) { o.sync = true } }

// WithNATSConfig changes the NATS configuration just before the start.
func WithNATSConfig(change func(*embedded.NATSConfig)) Option {
	return func(o *options) { o.natsConfig = change }
}

// Start gives a test a NATS server and a ClickHouse database of its own, and takes both away at its end.
func Start(t testing.TB, opts ...Option) *Servers {
	t.Helper()
	o := options{nats: true, clickhouse: true, users: usersWanted()}
	for _, set := range opts {
		set(&o)
	}
	s := &Servers{t: t}
	if o.clickhouse {
		s.startDatabase()
	}
	if o.nats {
		s.startNATS(o)
	}
	return s
}

// NC is a connection to NATS that reconnects forever and is closed at the end of the test. Always the same one.
func (s *Servers) NC() *nats.Conn {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nc == nil {
		nc, err := nats.Connect(s.NATSURL, append(s.As(access.UserOperator), nats.Timeout(startTimeout), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))...)
		if err != nil {
			s.t.Fatalf("connecting to the test's NATS: %v", err)
		}
		s.t.Cleanup(nc.Close)
		s.nc = nc
	}
	return s.nc
}

// HTTPDSN is the address of the test's database by HTTP, with the account that may do everything: what tables.Open takes.
func (s *Servers) HTTPDSN() string {
	s.t.Helper()
	return s.HTTPDSNOf(embedded.UserAlmanac)
}

// HTTPDSNOf is HTTPDSN with the account of one of access.ClickHouseUsers.
func (s *Servers) HTTPDSNOf(user string) string {
	s.t.Helper()
	u, err := url.Parse(s.ClickHouseHTTP)
	if err != nil {
		s.t.Fatalf("reading the engine's address: %v", err)
	}
	u.User, u.Path = url.UserPassword(s.Engine.Account(user)), "/"+s.Database
	return u.String()
}

// SQL opens the test's database as User; closed at the end of the test.
func (s *Servers) SQL() *sql.DB {
	s.t.Helper()
	opts, err := ch.ParseDSN(s.DSN)
	if err != nil {
		s.t.Fatalf("reading the test's DSN: %v", err)
	}
	db := ch.OpenDB(opts)
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (s *Servers) startNATS(o options) {
	s.t.Helper()
	cfg := embedded.NATSConfig{
		Dir:           NATSDir(s.t),
		NoSync:        !o.sync,
		MaxStoreBytes: 8 << 30, // a bound, not a reservation: tests in parallel need not share the disk out
	}
	if o.natsConfig != nil {
		o.natsConfig(&cfg)
	}
	if s.users = o.users; s.users {
		withUsers(s.t, &cfg, o.refused)
	}
	server, err := embedded.NewNATS(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	Run(s.t, server)
	s.NATS, s.NATSURL = server, server.ClientURL()
}

// NATSDir is a directory that is removed at the end of the test. A server's consumers and timers are outside of what
// its shutdown waits for, and may write one more file while it is removed.
func NATSDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "almanac-nats-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Eventually(t, startTimeout, func() error { return os.RemoveAll(dir) }) })
	return filepath.Join(dir, "nats")
}

func (s *Servers) startDatabase() {
	s.t.Helper()
	engine := clickhouse(s.t)
	s.Engine = engine
	s.ClickHouseHTTP, s.ClickHouseTCP = engine.HTTPURL(), engine.TCPAddr()
	s.User, s.Password = engine.User(), engine.Password()
	s.Database = databasePrefix + strings.ToLower(rand.Text()[:16])
	s.DSN = withDatabase(s.t, engine.DSN(), s.Database)
	if engine.ReaderPassword() != "" {
		s.ReaderDSN = withDatabase(s.t, engine.ReaderDSN(), s.Database)
	}

	opts, err := ch.ParseDSN(engine.DSN())
	if err != nil {
		s.t.Fatalf("reading the engine's DSN: %v", err)
	}
	db := ch.OpenDB(opts)
	s.t.Cleanup(func() {
		// The test's context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		// A statement that a stopped sink left under way may still make a table.
		Eventually(s.t, startTimeout, func() error {
			if _, err := db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+s.Database+" SYNC"); err != nil {
				return fmt.Errorf("dropping the test's database: %w", err)
			}
			return nil
		})
		_ = db.Close()
	})
	if _, err := db.ExecContext(s.t.Context(), "CREATE DATABASE "+s.Database+" ENGINE = Atomic"); err != nil {
		s.t.Fatalf("creating the test's database: %v", err)
	}
}

func withDatabase(t testing.TB, dsn, database string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("reading the engine's DSN: %v", err)
	}
	u.Path = "/" + database
	return u.String()
}
