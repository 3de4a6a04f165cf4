package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/bench"
	"github.com/almanac-events/almanac/embedded"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/tables"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the whole pipeline against its ceiling",
		Long: `Generate events in this process, run them through a whole Almanac of their own
(NATS with fsync, router, sinks, ClickHouse; in a folder beside the data
directory, removed afterwards), and wait until the last can be selected. Then
insert the same frames, encoded beforehand, straight into ClickHouse: the
ceiling. The ratio of the two is what can be compared between machines and
changes; the rates depend on what else the machine does.`,
		Args: cobra.NoArgs,
		RunE: a.does(a.bench),
	}
	outputFlag(cmd, asTable, asJSON)
	cmd.Flags().Int("events", 5_000_000, "how many events")
	cmd.Flags().Int("producers", 4, "how many producers log at once")
	cmd.Flags().Int("topics", 1, "how many topics they log to")
	cmd.Flags().Int("lanes", 4, "how many lanes a topic has")
	cmd.Flags().Int("event-bytes", 200, "about the size of an event")
	cmd.Flags().String("profile-out", "", "write the pipeline's CPU profile to FILE (for go tool pprof; label part)")
	cmd.Flags().Int("inserts", 0, "inserts at once (default: the processors, at least 2)")
	return cmd
}

func (a *app) bench(ctx context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	o, err := format(cmd, asTable, asTable, asJSON)
	if err != nil {
		return err
	}
	var cfg bench.Config
	for name, v := range map[string]*int{
		"events": &cfg.Events, "producers": &cfg.Producers, "topics": &cfg.Topics, "lanes": &cfg.Lanes, "event-bytes": &cfg.EventBytes, "inserts": &cfg.Inserts,
	} {
		if *v, _ = cmd.Flags().GetInt(name); *v < 0 || *v == 0 && name != "inserts" {
			return usageError{fmt.Errorf("--%s is %d, it must be 1 or more", name, *v)}
		}
	}
	cfg.Profile, _ = cmd.Flags().GetString("profile-out")
	if terminal(a.stderr) {
		cfg.Progress = func(phase string, done, of int) {
			_, _ = fmt.Fprintf(a.stderr, "\r\x1b[K%s %s", bar(min(float64(done)/float64(max(of, 1)), 1)), phase)
		}
		defer func() { _, _ = fmt.Fprintln(a.stderr) }()
	}
	res, err := a.runBench(ctx, s, cfg)
	if err != nil {
		return err
	}
	if o == asJSON {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(res)
	}
	return a.printBench(res)
}

// runBench gives the bench servers of its own, on the disk the data would be on.
func (a *app) runBench(ctx context.Context, s *settings, cfg bench.Config) (*bench.Result, error) {
	if err := os.MkdirAll(filepath.Dir(s.Data), 0o700); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(filepath.Dir(s.Data), ".almanac-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(path) }()
	dir, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: path})
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	log := s.logger(a.stderr)
	own := *s
	own.Data, own.Ports, own.NATS, own.ClickHouse = path, portsAuto, "", ""
	var v *servers
	pprof.Do(ctx, pprof.Labels(bench.LabelPart, "nats"), func(ctx context.Context) {
		v, err = startServers(ctx, &own, dir, log)
	})
	if err != nil {
		return nil, err
	}
	defer v.stop()
	if cfg.NATS, err = v.connect("almanac bench", log); err != nil {
		return nil, err
	}
	defer cfg.NATS.Close()
	if cfg.Registry, err = registry.Setup(ctx, cfg.NATS, v.limits()); err != nil {
		return nil, err
	}
	u, err := url.Parse(v.engine.HTTPURL())
	if err != nil {
		return nil, err
	}
	u.User, u.Path = url.UserPassword(v.engine.User(), v.engine.Password()), v.engine.Database()
	if cfg.DB, err = tables.Open(u.String()); err != nil {
		return nil, err
	}
	defer func() { _ = cfg.DB.Close() }()
	cfg.NATSURL, cfg.EnginePID = v.natsURL(), v.engine.PID()
	return bench.Run(ctx, cfg)
}

func (a *app) printBench(r *bench.Result) error {
	t := newTable("What", "Figure")
	row := func(what, format string, v ...any) { t.AppendRow([]any{what, fmt.Sprintf(format, v...)}) }
	row("events", "%s of about %d bytes, %d producers, %d topics of %d lanes", humanCount(uint64(r.Events)), r.EventBytes, r.Producers, r.Topics, r.Lanes)
	row("pipeline, until the last row", "%s events/s (%.1f s; accepted after %.1f s)", humanCount(uint64(r.EventsPerSecond)), r.StoredSeconds, r.AcceptedSeconds)
	row("ceiling, frames straight in", "%s events/s (%.1f s; %d inserts at once)", humanCount(uint64(r.CeilingEventsPerSecond)), r.CeilingSeconds, r.Inserts)
	row("ratio", "%.2f", r.Ratio)
	parts := make([]string, 0, len(r.CPUMicros))
	total := 0.0
	for part, v := range r.CPUMicros {
		parts = append(parts, fmt.Sprintf("%s %.2f", part, v))
		total += v
	}
	slices.Sort(parts)
	row("CPU an event", "%.2f µs: %s", total, strings.Join(parts, ", "))
	row("ClickHouse", "%s; for the ceiling %s", engineLine(&r.Engine), engineLine(&r.CeilingEngine))
	row("bytes an event", "%.0f on the wire, %.0f in SHARDS, %.0f in ClickHouse as merged so far", r.WireBytes, r.StreamDisk, r.TableDisk)
	row("frames", "%s of %d events", humanCount(uint64(r.Frames)), r.Events/max(r.Frames, 1))
	row("memory of this process", "%s at most", humanBytes(float64(r.PeakRSSBytes)))
	row("machine", "%d processors, %s, ClickHouse %s", r.CPUs, r.GoVersion, r.EngineVersion)
	return a.printTable(t)
}

func engineLine(e *bench.Engine) string {
	return fmt.Sprintf("%d inserts of %s rows, %.2f rows merged an event, %.2f µs of CPU", e.Inserts, humanCount(uint64(e.RowsPerInsert)), e.MergedRows, e.CPUMicros)
}
