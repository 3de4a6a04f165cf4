package bench

import (
	"context"
	"net/url"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/tables"
)

// idle is the CPU of an `almanac up` that is not in use, its ClickHouse included.
func idle(ctx context.Context, s *Suite) ([]Figure, error) {
	h, err := s.Environment(ctx) // for its directory, on the disk the data would be on
	if err != nil {
		return nil, err
	}
	defer h.Close()
	h.Stop()
	p, err := s.startProcess(ctx, nil, "up", "--data", h.Dir, "--ports", "auto")
	if err != nil {
		return nil, err
	}
	defer p.stop()
	if err := p.ready(ctx); err != nil {
		return nil, err
	}
	s.hold(ctx, "settling", 10*time.Second)
	own, engines := p.cmd.Process.Pid, children(p.cmd.Process.Pid)
	cpu := func() (mine, engine float64) {
		for _, pid := range engines {
			engine += cpuOf(pid)
		}
		return cpuOf(own), engine
	}
	began := time.Now()
	mine0, engine0 := cpu()
	s.hold(ctx, "idle", 30*time.Second)
	mine1, engine1 := cpu()
	wall := time.Since(began).Seconds()
	mine, engine := (mine1-mine0)/wall*100, (engine1-engine0)/wall*100
	return []Figure{atMost("idle", "CPU of an idle almanac up", mine+engine, unitCPU, 2,
		"over %.0f s, 10 s after its start: %.2f %% NATS, router, sinks and HTTP, %.2f %% ClickHouse", wall, mine, engine).
		raw("almanac_percent", mine, "clickhouse_percent", engine)}, ctx.Err()
}

// openDB opens the ClickHouse of an `up` that runs.
func openDB(a embedded.Addresses) (*tables.DB, error) {
	u, err := url.Parse(a.ClickHouseHTTP)
	if err != nil {
		return nil, err
	}
	u.User, u.Path = url.UserPassword(a.User, a.Password), a.Database
	return tables.Open(u.String())
}
