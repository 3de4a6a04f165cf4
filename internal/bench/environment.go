package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Environment is a NATS with fsync, its registry, and a ClickHouse, all empty at first
// and for one figure alone.
type Environment struct {
	NATS     *nats.Conn
	NATSURL  string
	Connect  func() (*nats.Conn, error) // as Config.Connect
	Registry *registry.Registry
	DB       *tables.DB
	// ClickHouse is its HTTP interface with account and database.
	ClickHouse string
	EnginePID  int
	// Dir is the data directory, which an `almanac up` can open after Stop.
	Dir string
	// Stop ends the servers and keeps Dir; Close does both, and may follow Stop.
	Stop, Close func()
}

// EnvironmentConfig is where and of what size the servers are.
type EnvironmentConfig struct {
	// NextTo is a directory whose parent gets the servers' own, so that they are on
	// the disk the data would be on.
	NextTo string
	// EventsBytes and ShardsBytes are the sizes of the streams; 0: shares of the free space.
	EventsBytes, ShardsBytes int64
	// Users says that NATS has the users of an up. All connect as the operator, whose subjects the server checks as it does others'.
	Users bool
	// TLS of NATS, for connections from other processes and those that name its address; nil: plain text. Those within this process
	// (Environment.Connect) have none, as in an up.
	TLS *tls.Config
	// Log hears the servers; may be nil.
	Log embedded.LogFunc
}

// OpenEnvironment starts servers on ports and in a directory of their own.
func OpenEnvironment(ctx context.Context, cfg EnvironmentConfig) (h *Environment, err error) {
	if err := os.MkdirAll(filepath.Dir(cfg.NextTo), 0o700); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(filepath.Dir(cfg.NextTo), ".almanac-bench-")
	if err != nil {
		return nil, fmt.Errorf("a directory for the bench: %w", err)
	}
	var stops []func()
	stop := sync.OnceFunc(func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	})
	h = &Environment{Dir: path, Stop: stop, Close: func() {
		stop()
		_ = os.RemoveAll(path)
	}}
	defer func() {
		if err != nil {
			h.Close()
			h = nil
		}
	}()
	dir, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: path})
	if err != nil {
		return h, err
	}
	stops = append(stops, func() { _ = dir.Close() })
	var pair *embedded.Pair
	pprof.Do(ctx, pprof.Labels(LabelPart, "nats"), func(ctx context.Context) { pair, err = startPair(ctx, dir, cfg) })
	if err != nil {
		return h, err
	}
	stops = append(stops, pair.Stop)
	addresses := pair.ClickHouse.Addresses(pair.NATS)
	h.NATSURL, h.EnginePID = addresses.NATSLogin(), pair.ClickHouse.PID()
	within := addresses
	within.NATS = pair.NATS.InProcessURL() // without TLS
	h.Connect = func() (*nats.Conn, error) {
		return nats.Connect(within.NATSLogin(), nats.InProcessServer(pair.NATS), nats.Name("almanac bench"), nats.MaxReconnects(-1), nats.Timeout(environmentTimeout))
	}
	if h.NATS, err = h.Connect(); err != nil {
		return h, err
	}
	stops = append(stops, h.NATS.Close)
	limits := schemas.StreamLimitsFor(pair.NATS.StoreLimit()).With(cfg.EventsBytes, cfg.ShardsBytes)
	limits.Replicas = 1
	if h.Registry, err = registry.Setup(ctx, h.NATS, limits); err != nil {
		return h, err
	}
	u, err := url.Parse(pair.ClickHouse.HTTPURL())
	if err != nil {
		return h, fmt.Errorf("the address of ClickHouse: %w", err)
	}
	u.User, u.Path = url.UserPassword(pair.ClickHouse.User(), pair.ClickHouse.Password()), "/"+pair.ClickHouse.Database()
	h.ClickHouse = u.String()
	if h.DB, err = tables.Open(h.ClickHouse); err != nil {
		return h, err
	}
	stops = append(stops, func() { _ = h.DB.Close() })
	return h, nil
}

// environmentTimeout bounds a connection to a server in this process, on a machine at work.
const environmentTimeout = 10 * time.Second

func startPair(ctx context.Context, dir *embedded.DataDir, cfg EnvironmentConfig) (*embedded.Pair, error) {
	store := int64(0)
	if cfg.EventsBytes > 0 && cfg.ShardsBytes > 0 {
		store = schemas.DefaultStreamLimits.With(cfg.EventsBytes, cfg.ShardsBytes).Bytes()
	}
	config := embedded.NATSConfig{Dir: dir.NATSDir(), MaxStoreBytes: store, TLS: cfg.TLS, Log: cfg.Log}
	if cfg.Users {
		var err error
		if config.Passwords, err = dir.NATSPasswords(); err != nil {
			return nil, err
		}
	}
	n, err := embedded.NewNATS(config)
	if err != nil {
		return nil, err
	}
	engine, err := embedded.Find(ctx, "", cfg.Log)
	if err != nil {
		return nil, err
	}
	c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: engine, Dir: dir.ClickHouseDir(), Database: schemas.DefaultDatabase, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	return embedded.StartPair(ctx, n, c)
}
