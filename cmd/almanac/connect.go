package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// natsTimeout is how long NATS may take to accept a connection. Tests change it.
var natsTimeout = streams.DialTimeout

// natsOptions are those of every connection: it comes back for as long as it takes.
func natsOptions(s *settings, d endpoints, name string) []nats.Option {
	opts := append(streams.Lasting(name), nats.Timeout(natsTimeout))
	if d.natsWait > 0 {
		opts = append(opts, nats.Timeout(d.natsWait))
	}
	if s.NATSCreds != "" {
		opts = append(opts, nats.UserCredentials(s.NATSCreds))
	}
	if !d.followNATS && isURL(s.NATS) { // one that is named, and not of an up
		if s.NATSCA != "" {
			opts = append(opts, nats.RootCAs(s.NATSCA))
		}
		if s.NATSCert != "" || s.NATSKey != "" {
			opts = append(opts, nats.ClientCert(s.NATSCert, s.NATSKey))
		}
	}
	if d.natsUser != "" && s.NATSCreds == "" {
		opts = append(opts, nats.UserInfo(d.natsUser, d.natsPassword)) // what the URL names comes first
	}
	if d.followNATS {
		opts = append(opts, nats.SetCustomDialer(follower{d.dir}))
	}
	if d.natsUser != "" { // of an up with a NATS of its own
		opts = append(opts, trustUp(d))
	}
	return opts
}

// trustUp trusts the certificate that the NATS of an up shows to commands of this machine, when it speaks TLS: the one that is written beside
// its address at the time.
func trustUp(d endpoints) nats.Option {
	return func(o *nats.Options) error {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: embedded.NATSLocalName}
		o.RootCAsCB = func() (*x509.CertPool, error) {
			text := d.natsCA
			if a, err := embedded.ReadAddresses(d.dir); err == nil {
				text = a.NATSCA
			}
			return certs.Pool([]byte(text))
		}
		return nil
	}
}

// follower dials the NATS of the process that runs on the data directory now: an up that
// took free ports listens elsewhere when it is started again.
type follower struct{ dir string }

// Dial implements nats.CustomDialer.
func (f follower) Dial(network, address string) (net.Conn, error) {
	if a, err := embedded.ReadAddresses(f.dir); err == nil {
		if u, err := url.Parse(a.NATS); err == nil && u.Host != "" {
			address = u.Host
		}
	}
	return (&net.Dialer{Timeout: streams.DialTimeout}).Dial(network, address)
}

// openTables prepares the connections to ClickHouse, which follow an `up` and its
// engine as those to NATS do.
func openTables(d endpoints) (*tables.DB, error) {
	if !d.followClickHouse {
		return openFixed(d)
	}
	return tables.OpenBy(d.clickhouse, func(ctx context.Context, network, address string) (net.Conn, error) {
		if a, err := embedded.ReadAddresses(d.dir); err == nil {
			if u, err := url.Parse(a.ClickHouseHTTP); err == nil && u.Host != "" {
				address = u.Host
			}
		}
		return (&net.Dialer{Timeout: streams.DialTimeout}).DialContext(ctx, network, address)
	}, nil)
}

// openFixed is openTables that stays with the address as it is now.
func openFixed(d endpoints) (*tables.DB, error) {
	return tables.OpenBy(d.clickhouse, (&net.Dialer{Timeout: streams.DialTimeout}).DialContext, d.clickhouseCA)
}

// establish finds out that ClickHouse is one that Almanac can use, and the one that has the
// cluster's rows.
func establish(ctx context.Context, db *tables.DB) error {
	if err := db.Establish(ctx); err != nil {
		return err
	}
	_, err := db.Ping(ctx)
	return err
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

// session is a verb's connections to a running Almanac.
type session struct {
	endpoints
	nc  *nats.Conn
	reg *registry.Registry
	db  *tables.DB
	// settings are those of this process, not of the Almanac it is connected to.
	settings *settings
}

// openRegistry connects to NATS and its registry; db stays nil.
func openRegistry(ctx context.Context, s *settings, d endpoints) (*session, error) {
	nc, err := streams.Connect(d.nats, natsOptions(s, d, "cli")...)
	if err != nil {
		return nil, err
	}
	reg, err := registry.Open(ctx, nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &session{endpoints: d, nc: nc, reg: reg, settings: s}, nil
}

// open connects to both servers and makes a reader over them.
func open(ctx context.Context, s *settings) (*session, *query.Reader, error) {
	c, err := openServers(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	r, err := query.New(c.nc, c.reg, c.db)
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, r, nil
}

// whenOpen opens both servers and a reader over them, and closes them after f.
func whenOpen(ctx context.Context, cmd *cobra.Command, f func(c *session, r *query.Reader) error) error {
	return whenServed(ctx, cmd, func(c *session) error {
		r, err := query.New(c.nc, c.reg, c.db)
		if err != nil {
			return err
		}
		return f(c, r)
	})
}

// whenServed opens both servers that the settings lead to, and closes them after f.
func whenServed(ctx context.Context, cmd *cobra.Command, f func(*session) error) error {
	return whenConnected(ctx, cmd, openServers, f)
}

// whenNATS is whenServed without ClickHouse.
func whenNATS(ctx context.Context, cmd *cobra.Command, f func(*session) error) error {
	return whenConnected(ctx, cmd, openNATS, f)
}

func whenConnected(ctx context.Context, cmd *cobra.Command, connect func(context.Context, *settings) (*session, error), f func(*session) error) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	c, err := connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return f(c)
}

// openNATS connects to NATS alone.
func openNATS(ctx context.Context, s *settings) (*session, error) {
	d, err := findEndpoints(s, natsAlone)
	if err != nil {
		return nil, err
	}
	return openRegistry(ctx, s, d)
}

// openServers connects to NATS and ClickHouse of a running Almanac.
func openServers(ctx context.Context, s *settings) (*session, error) {
	d, err := findEndpoints(s, bothServers)
	if err != nil {
		return nil, err
	}
	return openBoth(ctx, s, d)
}

// openBoth connects to NATS and ClickHouse at their addresses.
func openBoth(ctx context.Context, s *settings, d endpoints) (*session, error) {
	c, err := openRegistry(ctx, s, d)
	if err != nil {
		return nil, err
	}
	if c.db, err = openTables(d); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.db.MeantFor(c.reg)
	return c, nil
}

// tellTarget prints where a verb that changes or removes something is about to do it.
func (a *app) tellTarget(c *session) {
	text := "on NATS " + c.nc.ConnectedAddr()
	if c.clickhouse != "" {
		text += " and ClickHouse " + privacy.MaskedURL(c.clickhouse)
	}
	if c.dir != "" {
		text += ", the almanac up on " + c.dir
	}
	a.note("%s", text)
}

// Close drops the connections.
func (c *session) Close() error {
	c.nc.Close()
	if c.db == nil {
		return nil
	}
	return c.db.Close()
}
