package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/bench"
	"github.com/almanac-events/almanac/schemas"
)

func loadFlags(cmd *cobra.Command) {
	addFlags(cmd,
		switchFlag("load", "measure what an event costs at steady loads (an hour and a half)"),
		namesFlag("only", "with --load, measure these `LOADS` alone: events a second, or RATExTOPICS"),
		lengthFlag("load-for", "how long each load of --load is measured (default 10m)"),
		lengthFlag("load-warm", "how long each load of --load is offered before (default 2m)"),
		numberFlag("load-marks", "events whose way to query, and to SQL, is timed afterwards (default 150)"),
	)
}

// loadsOf are the loads that are wanted, nil without --load.
func loadsOf(cmd *cobra.Command) (points []bench.LoadPoint, lc bench.LoadConfig, err error) {
	wanted, _ := cmd.Flags().GetBool("load")
	if !wanted {
		for _, name := range []string{"load-for", "load-warm", "load-marks"} {
			if cmd.Flags().Changed(name) {
				return nil, lc, usageError{fmt.Errorf("--%s belongs to --load: pass it too", name)}
			}
		}
		return nil, lc, nil
	}
	lc.For, _ = cmd.Flags().GetDuration("load-for")
	lc.Warm, _ = cmd.Flags().GetDuration("load-warm")
	lc.Marks, _ = cmd.Flags().GetInt("load-marks")
	if lc.Lanes, _ = cmd.Flags().GetInt("lanes"); lc.Lanes < 1 {
		return nil, lc, usageError{fmt.Errorf("--lanes is %d, it must be 1 or more", lc.Lanes)}
	}
	if lc.For < 0 || lc.Warm < 0 || lc.Marks < 0 {
		return nil, lc, usageError{errors.New("--load-for, --load-warm and --load-marks must not be negative")}
	}
	only, _ := cmd.Flags().GetStringSlice("only")
	if len(only) == 0 {
		return bench.LoadPoints(), lc, nil
	}
	if points, err = bench.ParseLoadPoints(only); err != nil {
		return nil, lc, usageError{fmt.Errorf("--only: %w", err)}
	}
	return points, lc, nil
}

// benchLoad measures one load after the other and prints them.
func (a *app) benchLoad(ctx context.Context, s *settings, points []bench.LoadPoint, lc bench.LoadConfig, output string) (err error) {
	suite := &bench.Suite{Size: bench.Full, Environment: func(ctx context.Context) (*bench.Environment, error) {
		return bench.OpenEnvironment(ctx, benchEnvironment(s, a.stderr))
	}}
	if suite.Binary, err = os.Executable(); err != nil {
		return err
	}
	if terminal(a.stderr) {
		suite.Progress = func(figure, phase string, done, of int) { a.benchProgress(figure+": "+phase, done, of) }
		defer func() { _, _ = fmt.Fprintln(a.stderr) }()
	}
	r, failed := suite.Loads(ctx, points, lc, func(text string) { a.note("%s", text) }, nil)
	if ctx.Err() != nil {
		return errors.Join(failed, errInterrupted)
	}
	if output == asJSON {
		return errors.Join(a.printJSON(r), failed)
	}
	for i := range r.Loads {
		if err := a.printLoad(&r.Loads[i]); err != nil {
			return err
		}
	}
	return failed
}

func (a *app) printLoad(r *bench.LoadResult) error {
	t := newTable("What", "Figure")
	row := func(what, format string, v ...any) { t.AppendRow([]any{what, fmt.Sprintf(format, v...)}) }
	row("load", "%d events/s over %d topics of %d lanes, %.0f s after %.0f s; %d dropped", r.Rate, r.Topics, r.Lanes, r.Seconds, r.WarmSeconds, r.Dropped)
	row("CPU an event", "%.1f µs: up %.1f, ClickHouse %.1f (halves %.1f, %.1f), producers %.1f", r.CPU(), r.UpCPU, r.EngineCPU, r.EngineFirstCPU, r.EngineSecondCPU, r.ProducerCPU)
	row("bytes written an event", "up %.0f, ClickHouse %.0f: %.1f × the %.1f of a merged one", r.UpWritten, r.EngineWritten, r.WrittenShare, r.MergedBytes)
	row("syncs an event", "ClickHouse %.5f; messages of EVENTS %.5f, of SHARDS %.5f; write calls of up %.4f", r.EngineSyncs, r.EventsMessages, r.ShardsMessages, r.UpWrites)
	row("inserts", "%d of %.0f rows", r.Inserts, r.RowsPerInsert)
	row("merges", "%.2f rows rewritten an event, levels up to %d", r.MergedRows, r.MaxLevel)
	row("disk", "%s held for %s live, %.1f × at most; %d parts, %d live", schemas.FormatBytes(float64(r.HeldBytes)), schemas.FormatBytes(float64(r.LiveBytes)), r.HeldShare, r.Parts, r.LiveParts)
	row("resident", "up %s (middle %s, peak %s), ClickHouse %s (middle %s)", schemas.FormatBytes(float64(r.UpResident)), schemas.FormatBytes(float64(r.UpMiddle)), schemas.FormatBytes(float64(r.UpPeakBytes)), schemas.FormatBytes(float64(r.EngineResident)), schemas.FormatBytes(float64(r.EngineMiddle)))
	if up, engine, ok := r.Grew(); ok {
		row("the last five minutes against the first", "resident up %.2f ×, ClickHouse %.2f ×", up, engine)
	}
	row("open files", "up %d, ClickHouse %d (middle %d)", r.UpOpen, r.EngineOpen, r.EngineOpenMiddle)
	row("accepted until seen", "query p50 %.0f, p99 %.0f ms; SQL p50 %.0f, p99 %.0f ms", r.QueryP50Millis, r.QueryP99Millis, r.SQLP50Millis, r.SQLP99Millis)
	row("verify", "%d accepted, each stored once; looked through in %.1f s", r.Accepted, r.VerifySeconds)
	row("other work", "%.2f cores", r.OtherCores)
	return a.printTable(t)
}
