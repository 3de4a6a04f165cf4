package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/bench"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the whole pipeline against its ceiling",
		Long: `Generate events in this process, run them through a whole Almanac of their own
(NATS with fsync, router, sinks, ClickHouse; in a folder beside the data
directory, removed afterwards), and wait until the last can be selected. Then
insert the same frames, read back beforehand, straight into ClickHouse: the
ceiling. The ratio of the two is what can be compared between machines and
changes; the rates depend on what else the machine does.

With --load it measures instead what an event costs at the steady loads people
have. Both want a machine that does nothing else.`,
		Example: `  almanac bench --events 1000000
  almanac bench --load --only 1000,20000x64 --load-for 3m --load-warm 30s`,
		Args: unknownCommand,
		RunE: a.does(a.bench),
	}
	outputFlag(cmd, asTable, asJSON)
	addFlags(cmd,
		orElse(numberFlag("events", "how many events"), 5_000_000),
		orElse(numberFlag("producers", "how many producers log at once"), 4),
		orElse(numberFlag("topics", "how many topics they log to"), 1),
		orElse(numberFlag("lanes", "how many lanes a topic has"), schemas.DefaultLanes),
		orElse(numberFlag("event-bytes", "about the size of an event"), 200),
		textFlag("profile-out", "write the pipeline's CPU profile to FILE (for go tool pprof; label part)"),
		numberFlag("inserts", "inserts at once (default: the processors, at least 2)"),
	)
	loadFlags(cmd)
	return cmd
}

func (a *app) bench(ctx context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	o := format(cmd, asTable)
	if err := s.ownServers("bench"); err != nil {
		return err
	}
	points, lc, err := loadsOf(cmd)
	if err != nil {
		return err
	}
	if len(points) > 0 {
		if err := without(cmd, "--load", "events", "producers", "topics", "event-bytes", "profile-out", "inserts"); err != nil {
			return err
		}
		return a.benchLoad(ctx, s, points, lc, o)
	}
	if cmd.Flags().Changed("only") {
		return usageError{errors.New("--only belongs to --load: pass it too")}
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
		cfg.Progress = func(phase string, done, of int) { a.benchProgress(phase, done, of) }
		defer func() { _, _ = fmt.Fprintln(a.stderr) }()
	}
	h, err := bench.OpenEnvironment(ctx, benchEnvironment(s, a.stderr))
	if err != nil {
		return err
	}
	defer h.Close()
	cfg.NATS, cfg.NATSURL, cfg.Connect, cfg.Registry, cfg.DB, cfg.EnginePID = h.NATS, h.NATSURL, h.Connect, h.Registry, h.DB, h.EnginePID
	res, err := bench.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if o == asJSON {
		return a.printJSON(res)
	}
	return a.printBench(res)
}

// without refuses flags that what mode measures does not look at.
func without(cmd *cobra.Command, mode string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usageError{fmt.Errorf("--%s does not belong to %s: leave one of them out", name, mode)}
		}
	}
	return nil
}

func (a *app) benchProgress(phase string, done, of int) {
	_, _ = fmt.Fprintf(a.stderr, clearLine+"%s %s", bar(min(float64(done)/float64(max(of, 1)), 1)), phase)
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
	row("memory of this process", "%s at most", schemas.FormatBytes(float64(r.PeakRSSBytes)))
	row("machine", "%d processors, %s, ClickHouse %s", r.CPUs, r.GoVersion, r.EngineVersion)
	return a.printTable(t)
}

func engineLine(e *bench.Engine) string {
	return fmt.Sprintf("%d inserts of %s rows, %.2f rows merged an event, %.2f µs of CPU", e.Inserts, humanCount(uint64(e.RowsPerInsert)), e.MergedRows, e.CPUMicros)
}
