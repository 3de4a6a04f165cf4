package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/bench"
	"github.com/almanac-events/almanac/embedded"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/tables"
)

// benchHouse starts servers of the bench's own, on the disk the data would be on.
func (a *app) benchHouse(ctx context.Context, s *settings) (h *bench.House, err error) {
	if err := os.MkdirAll(filepath.Dir(s.Data), 0o700); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(filepath.Dir(s.Data), ".almanac-bench-")
	if err != nil {
		return nil, fmt.Errorf("a directory for the bench: %w", err)
	}
	var stops []func()
	stop := sync.OnceFunc(func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	})
	h = &bench.House{Dir: path, Stop: stop, Close: func() {
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
	log := s.logger(a.stderr)
	own := *s
	own.Data, own.Ports, own.NATS, own.ClickHouse = path, portsAuto, "", ""
	var v *servers
	pprof.Do(ctx, pprof.Labels(bench.LabelPart, "nats"), func(ctx context.Context) {
		v, err = startServers(ctx, &own, dir, log)
	})
	if err != nil {
		return h, err
	}
	stops = append(stops, v.stop)
	if h.NATS, err = v.connect("almanac bench", log); err != nil {
		return h, err
	}
	stops = append(stops, h.NATS.Close)
	if h.Registry, err = registry.Setup(ctx, h.NATS, v.limits()); err != nil {
		return h, err
	}
	if h.ClickHouse, err = withAccount(v.engine.HTTPURL(), v.engine.User(), v.engine.Password(), v.engine.Database()); err != nil {
		return h, err
	}
	if h.DB, err = tables.Open(h.ClickHouse); err != nil {
		return h, err
	}
	stops = append(stops, func() { _ = h.DB.Close() })
	h.Connect = func() (*nats.Conn, error) { return v.connect("almanac bench part", log) }
	h.NATSURL, h.EnginePID = v.natsURL(), v.engine.PID()
	return h, nil
}
