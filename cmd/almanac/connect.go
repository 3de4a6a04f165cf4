package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/embedded"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/tables"
)

// doors are where the servers of a running Almanac are.
type doors struct {
	nats       string
	clickhouse string // DSN of the HTTP interface
	// clickhouseTCP is host:port of the native protocol, where an up said so.
	clickhouseTCP string
	// readerUser may only read; empty where Almanac made no users.
	readerUser, readerPassword string
	// http is Almanac's own interface; empty when there is none, or it is not known.
	http string
	// dir is the data directory that said so; empty when both were given.
	dir string
}

// findDoors takes what was given, and the rest from the addresses an `up` wrote
// into its data directory. What is not needed may be missing.
func findDoors(s *settings, needClickHouse bool) (doors, error) {
	var d doors
	if s.NATS == "" || s.ClickHouse == "" && needClickHouse {
		a, err := embedded.ReadAddresses(s.Data)
		if err != nil {
			return d, err
		}
		d = doors{nats: a.NATS, http: a.HTTP, clickhouseTCP: a.ClickHouseTCP, readerUser: a.ReaderUser, readerPassword: a.ReaderPassword, dir: s.Data}
		if d.clickhouse, err = withAccount(a.ClickHouseHTTP, a.User, a.Password, a.Database); err != nil {
			return d, err
		}
	}
	if s.NATS != "" {
		d.nats, d.http = s.NATS, ""
		if !isURL(s.NATS) {
			d.nats = "nats://" + s.NATS // the address an up was told to listen on
		}
	}
	if s.ClickHouse != "" {
		d.readerUser, d.readerPassword = "", ""
		var err error
		if d.clickhouse, err = httpDSN(s.ClickHouse); err != nil {
			return d, configError{err}
		}
	}
	if s.NATS != "" && (s.ClickHouse != "" || !needClickHouse) {
		d.dir = ""
	}
	return d, nil
}

func isURL(s string) bool { return strings.Contains(s, "://") }

// httpDSN is the HTTP interface behind any ClickHouse DSN.
func httpDSN(dsn string) (string, error) {
	c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: embedded.Engine{Kind: embedded.EngineRemote, DSN: dsn}})
	if err != nil {
		return "", err
	}
	return withAccount(c.HTTPURL(), c.User(), c.Password(), c.Database())
}

func withAccount(base, user, password, database string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("the address of ClickHouse: %w", err)
	}
	u.User, u.Path = url.UserPassword(user, password), "/"+database
	return u.String(), nil
}

// natsOptions are those of every connection: it comes back for as long as it takes.
func natsOptions(s *settings, d doors, name string) []nats.Option {
	opts := []nats.Option{
		nats.Name("almanac " + name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.Timeout(dialTimeout),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(2),
		nats.IgnoreAuthErrorAbort(), // credentials that are refused for a while must not end a router for good
	}
	if s.NATSCreds != "" {
		opts = append(opts, nats.UserCredentials(s.NATSCreds))
	}
	if d.dir != "" {
		opts = append(opts, nats.SetCustomDialer(follower{d.dir}))
	}
	return opts
}

// A server that vanished without a word is found after two unanswered pings; the
// client's own default would take six minutes.
const (
	reconnectWait = 250 * time.Millisecond
	dialTimeout   = 2 * time.Second
	pingInterval  = 3 * time.Second
)

// follower dials the NATS of whoever runs on the data directory now: an up that
// took free ports listens elsewhere when it is started again.
type follower struct{ dir string }

// Dial implements nats.CustomDialer.
func (f follower) Dial(network, address string) (net.Conn, error) {
	if a, err := embedded.ReadAddresses(f.dir); err == nil {
		if u, err := url.Parse(a.NATS); err == nil && u.Host != "" {
			address = u.Host
		}
	}
	return (&net.Dialer{Timeout: dialTimeout}).Dial(network, address)
}

// openTables prepares the connections to ClickHouse, which follow an `up` and its
// engine as those to NATS do.
func openTables(d doors) (*tables.DB, error) {
	if d.dir == "" || d.readerUser == "" { // given, or an engine that is elsewhere
		return tables.Open(d.clickhouse)
	}
	return tables.OpenBy(d.clickhouse, func(ctx context.Context, network, address string) (net.Conn, error) {
		if a, err := embedded.ReadAddresses(d.dir); err == nil {
			if u, err := url.Parse(a.ClickHouseHTTP); err == nil && u.Host != "" {
				address = u.Host
			}
		}
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	})
}

// watched makes a long-lived connection say what happens to it.
func watched(log zerolog.Logger) []nats.Option {
	return []nats.Option{
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn().Err(err).Msg("nats") }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil: we closed it
				log.Warn().Err(err).Msg("nats: disconnected")
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info().Msg("nats: connected again") }),
	}
}

// syncQueueLen is how many messages one answer of a batched read may be ahead of
// its reader: JetStream gives at most 1,024. The client makes that queue anew for
// every read, and its default of 65,536 is half a megabyte each time.
const syncQueueLen = 2048

func dialNATS(url string, opts ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(url, append([]nats.Option{nats.SyncQueueLen(syncQueueLen)}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("NATS at %s: %w", masked(url), err)
	}
	return nc, nil
}

// session is a verb's connections to a running Almanac.
type session struct {
	doors
	nc  *nats.Conn
	reg *registry.Registry
	db  *tables.DB
	// replayWindow is what the settings here say of it.
	replayWindow time.Duration
}

// openRegistry connects to NATS and its registry; db stays nil.
func openRegistry(ctx context.Context, s *settings, d doors) (*session, error) {
	nc, err := dialNATS(d.nats, natsOptions(s, d, "cli")...)
	if err != nil {
		return nil, err
	}
	reg, err := registry.Open(ctx, nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &session{doors: d, nc: nc, reg: reg, replayWindow: s.ReplayWindow}, nil
}

// open connects to both servers and makes a reader over them.
func open(ctx context.Context, s *settings) (*session, *query.Reader, error) {
	d, err := findDoors(s, true)
	if err != nil {
		return nil, nil, err
	}
	c, err := openRegistry(ctx, s, d)
	if err != nil {
		return nil, nil, err
	}
	if c.db, err = openTables(d); err == nil {
		var r *query.Reader
		if r, err = query.New(c.nc, c.reg, c.db); err == nil {
			return c, r, nil
		}
	}
	return nil, nil, errors.Join(err, c.Close())
}

// Close drops the connections.
func (c *session) Close() error {
	c.nc.Close()
	if c.db == nil {
		return nil
	}
	return c.db.Close()
}
