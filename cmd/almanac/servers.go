package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// servers are the NATS and the ClickHouse of `up`: its own, or elsewhere.
type servers struct {
	*embedded.Pair
	s *settings
	// passwords are those of our own NATS's users.
	passwords map[string]string
}

// startServers starts both at once and returns when both answer. change is for a NATS of its own, before it starts.
func startServers(ctx context.Context, s *settings, dir *embedded.DataDir, log zerolog.Logger, change func(*embedded.NATSConfig) error) (*servers, error) {
	var own *embedded.NATS
	var passwords map[string]string
	if !isURL(s.NATS) {
		var err error
		if passwords, err = dir.NATSPasswords(); err != nil {
			return nil, err
		}
		config, err := s.natsConfig(passwords, change)
		if err != nil {
			return nil, err
		}
		config.Log = serverLog(log)
		if own, err = embedded.NewNATS(config); err != nil {
			return nil, configError{err}
		}
	}
	found, err := embedded.Find(ctx, s.ClickHouse, serverLog(log))
	if err != nil {
		return nil, err
	}
	config := s.clickHouseConfig(found)
	config.Log = serverLog(log)
	engine, err := embedded.NewClickHouse(config)
	if err != nil {
		return nil, configError{err}
	}
	pair, err := embedded.StartPair(ctx, own, engine)
	if err != nil {
		return nil, err
	}
	return &servers{Pair: pair, s: s, passwords: passwords}, nil
}

// hungAfter is when the NATS of an up counts as one that hangs; 0: as embedded has it. It is a variable so that a test need not wait so long.
var hungAfter time.Duration

// natsConfig is that of the NATS of an up, as change leaves it.
func (s *settings) natsConfig(passwords map[string]string, change func(*embedded.NATSConfig) error) (c embedded.NATSConfig, err error) {
	host, port, err := listenAddress(s.NATS, s.port(embedded.DefaultNATSPort))
	if err != nil {
		return c, configError{fmt.Errorf("nats: %w", err)}
	}
	c = embedded.NATSConfig{Dir: embedded.NATSDir(s.Data), Host: host, Port: port, MaxStoreBytes: storeBytes(s), Passwords: passwords, HungAfter: hungAfter}
	return c, change(&c)
}

// clickHouseConfig is that of the ClickHouse of an up.
func (s *settings) clickHouseConfig(engine embedded.Engine) embedded.ClickHouseConfig {
	return embedded.ClickHouseConfig{
		Engine: engine, Roots: s.ClickHouseCA, Dir: embedded.ClickHouseDir(s.Data), ColdDir: s.ColdDir, Database: schemas.DefaultDatabase,
		Passing: tables.Passing,
		TCPPort: s.port(embedded.DefaultClickHouseTCPPort), HTTPPort: s.port(embedded.DefaultClickHouseHTTPPort),
	}
}

// connect gives a connection for a part: without a socket, and as a user, when NATS is ours.
func (v *servers) connect(user, name string, log zerolog.Logger) (*nats.Conn, error) {
	if v.NATS != nil {
		opts := append(streams.Lasting(name), watched(log)...)
		return streams.Connect(v.NATS.InProcessURL(), append(opts, nats.InProcessServer(v.NATS), nats.UserInfo(user, v.passwords[user]))...)
	}
	return streams.Connect(v.s.NATS, append(natsOptions(v.s, endpoints{}, name), watched(log)...)...)
}

// natsURL is where others connect.
func (v *servers) natsURL() string {
	if v.NATS != nil {
		return v.NATS.ClientURL()
	}
	return v.s.NATS
}

// limits are those of the streams: shares of what our own server may store,
// unless flags say otherwise.
func (v *servers) limits() schemas.StreamLimits {
	if v.NATS == nil {
		return streamLimits(v.s, schemas.DefaultStreamLimits)
	}
	return streamLimits(v.s, schemas.StreamLimitsFor(v.NATS.StoreLimit()))
}

// streamLimits are l with what was said in its place.
func streamLimits(s *settings, l schemas.StreamLimits) schemas.StreamLimits {
	l = l.With(s.EventsBytes, s.ShardsBytes).WithFronts(s.DocsBytes, s.TimersBytes)
	l.Replicas = s.Replicas
	return l
}

// storeBytes is the store that fits the streams when both sizes were said, so
// that they are believed; 0 leaves it to the free space.
func storeBytes(s *settings) int64 {
	if s.EventsBytes == 0 || s.ShardsBytes == 0 {
		return 0
	}
	return schemas.DefaultStreamLimits.With(s.EventsBytes, s.ShardsBytes).WithFronts(s.DocsBytes, s.TimersBytes).Bytes()
}

// port is the usual one, or any.
func (s *settings) port(usual int) int {
	if s.Ports == portsAuto {
		return 0
	}
	return usual
}

// listenAddress reads host:port, :port or nothing.
func listenAddress(text string, port int) (string, int, error) {
	if text == "" {
		return "127.0.0.1", port, nil
	}
	host, p, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(p)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q is not an address; give host:port, such as 127.0.0.1:%d, or :0 for a free port", text, port)
	}
	return cmp.Or(host, "127.0.0.1"), port, nil
}
