package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/bench"
)

// benchSuite is which figures are wanted, and where they go.
type benchFlags struct {
	all, growth          bool
	loads                []bench.LoadPoint
	load                 bench.LoadConfig
	size                 bench.Size
	only                 []string
	write, record, check string
}

func suiteFlags(cmd *cobra.Command) {
	cmd.Flags().Bool("all", false, "measure every figure that has a bar (about a quarter of an hour)")
	cmd.Flags().Bool("growth", false, "measure how costs grow with rows, shards, months, topics, lanes and producers")
	cmd.Flags().StringSlice("only", nil, "measure only these `FIGURES` of --all: "+strings.Join(bench.Names(), ", ")+"; of --growth: "+strings.Join(bench.GrowthNames(), ", "))
	cmd.Flags().Bool("short", false, "two fifths of every size")
	cmd.Flags().Bool("quick", false, "a twentieth of every size: to see that it works; the figures mean little")
	cmd.Flags().String("write", "", "write results into this `DIR` too: JSON, and the tables of its README.md")
	cmd.Flags().String("record", "", "write the results into `FILE`, for --against")
	cmd.Flags().String("against", "", "compare the main ratios with those recorded in `FILE`; fail when one fell by more than 20 %")
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(append(bench.Names(), bench.GrowthNames()...), cobra.ShellCompDirectiveNoFileComp))
}

func suiteOf(cmd *cobra.Command) (f benchFlags, err error) {
	f.all, _ = cmd.Flags().GetBool("all")
	f.growth, _ = cmd.Flags().GetBool("growth")
	quick, _ := cmd.Flags().GetBool("quick")
	less, _ := cmd.Flags().GetBool("short")
	f.size = bench.Full
	if quick {
		f.size = bench.Quick
	} else if less {
		f.size = bench.Short
	}
	f.only, _ = cmd.Flags().GetStringSlice("only")
	f.write, _ = cmd.Flags().GetString("write")
	f.record, _ = cmd.Flags().GetString("record")
	f.check, _ = cmd.Flags().GetString("against")
	if f.loads, f.load, err = loadsOf(cmd, f.only); err != nil {
		return f, err
	}
	switch {
	case len(f.loads) > 0 && (f.all || f.growth || f.check != "" || f.record != "" || f.size != bench.Full):
		return f, usageError{errors.New("--load stands alone: pass it without --all, --growth, --record, --against, --short and --quick")}
	case f.growth && (f.all || f.check != "" || f.record != ""):
		return f, usageError{errors.New("--growth stands alone: give it without --all, --record and --against")}
	case quick && less:
		return f, usageError{errors.New("--quick and --short are two sizes: give one of them")}
	case !f.wanted() && (f.size != bench.Full || f.write != "" || f.record != ""):
		return f, usageError{errors.New("--short, --quick, --write and --record belong to --all, --growth or --load: give one of them")}
	case len(f.only) == 0 && f.check != "" && !f.all:
		f.only = bench.CheckNames()
	}
	if f.growth {
		return f, growthOnly(f.only)
	}
	if len(f.loads) > 0 {
		return f, nil
	}
	if _, err := bench.Selected(f.only); err != nil {
		return f, usageError{fmt.Errorf("--only: %w%s", err, suggestion(f.only[0], bench.Names(), ""))}
	}
	return f, nil
}

// wanted says whether the suite runs, and not the one plain comparison.
func (f *benchFlags) wanted() bool {
	return f.all || f.growth || len(f.loads) > 0 || len(f.only) > 0 || f.check != ""
}

// errMissed is a bar that was missed, said in the table.
var errMissed = errors.New("missed")

func (a *app) benchSuite(ctx context.Context, s *settings, f benchFlags, output string) error {
	recorded := bench.Report{}
	var err error
	if f.check != "" { // before a quarter of an hour is spent
		if recorded, err = bench.ReadReport(f.check); err != nil {
			return err
		}
	}
	if f.write != "" {
		if err := os.MkdirAll(f.write, 0o755); err != nil {
			return err
		}
	}
	suite := &bench.Suite{Size: f.size, House: func(ctx context.Context) (*bench.House, error) { return a.benchHouse(ctx, s) }}
	if suite.Binary, err = os.Executable(); err != nil {
		return err
	}
	if terminal(a.stderr) {
		suite.Progress = func(figure, phase string, done, of int) { a.benchProgress(figure+": "+phase, done, of) }
		defer func() { _, _ = fmt.Fprintln(a.stderr) }()
	}
	if len(f.loads) > 0 {
		return a.benchLoad(ctx, suite, f, output)
	}
	if f.growth {
		return a.benchGrowth(ctx, suite, f, output)
	}
	report, failed := a.benchFigures(ctx, suite, f)
	if len(report.Figures) == 0 {
		return failed
	}
	if err := a.printFigures(report, output); err != nil {
		return err
	}
	if f.record != "" {
		failed = errors.Join(failed, bench.WriteReport(f.record, report))
	}
	if f.write != "" {
		failed = errors.Join(failed, writeFigures(f, report))
	}
	if failed != nil {
		return failed
	}
	if f.check != "" {
		return a.benchFalls(report, recorded)
	}
	var missed []string
	for _, g := range report.Figures {
		if !g.Pass {
			missed = append(missed, g.Name)
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("%d of %d figures %w their bar: %s", len(missed), len(report.Figures), errMissed, strings.Join(missed, ", "))
	}
	return nil
}

// writeFigures writes the results and their table. A run of --only some renews
// those and leaves the others as they are.
func writeFigures(f benchFlags, report bench.Report) error {
	path := filepath.Join(f.write, "results.json")
	if old, err := bench.ReadReport(path); err == nil && len(f.only) > 0 {
		report = bench.Merged(old, report)
	}
	return errors.Join(bench.WriteReport(path, report), bench.ReplaceSection(filepath.Join(f.write, "README.md"), "figures", report.Markdown()))
}

// benchFigures measures one figure after the other. One that cannot be measured
// costs no other.
func (a *app) benchFigures(ctx context.Context, suite *bench.Suite, f benchFlags) (report bench.Report, failed error) {
	measures, err := bench.Selected(f.only)
	if err != nil {
		return report, usageError{err}
	}
	began, others := time.Now(), bench.WatchOthers()
	report.Size = f.size
	if report.Machine, err = suite.DescribeMachine(ctx); err != nil {
		return report, err
	}
	for _, m := range measures {
		at := time.Now()
		figures, err := suite.Measure(ctx, m)
		if ctx.Err() != nil {
			return report, errors.Join(failed, errInterrupted)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			a.note("%s: not measured: %v", m.Name, err)
		}
		for _, g := range figures {
			a.note("%s (%.0f s): %s, %s: %s", g.Name, time.Since(at).Seconds(), g.Measured(), g.Bound(), strings.Trim(g.Verdict(), "*"))
		}
		report.Figures = append(report.Figures, figures...)
	}
	report.Seconds, report.OtherCores = time.Since(began).Seconds(), others.Cores()
	return report, failed
}

// benchFalls fails when a ratio of the report is much worse than the recorded.
// What was recorded and not measured now is left out.
func (a *app) benchFalls(report, recorded bench.Report) error {
	old := slices.DeleteFunc(slices.Clone(recorded.Figures), func(o bench.Figure) bool {
		return !slices.ContainsFunc(report.Figures, func(g bench.Figure) bool { return g.Name == o.Name })
	})
	if report.Size != recorded.Size {
		return fmt.Errorf("%w of this size: it is %s, and this run is %s", bench.ErrNoReport, recorded.Size, report.Size)
	}
	if len(old) == 0 {
		return fmt.Errorf("%w: none of the figures measured now is in it", bench.ErrNoReport)
	}
	var errs []error
	for _, fall := range bench.Falls(report.Figures, old) {
		errs = append(errs, fall)
	}
	if len(errs) == 0 {
		a.note("%d ratios are within %.0f %% of the recorded ones", len(old), bench.MaxFall*100)
	}
	return errors.Join(errs...)
}

func (a *app) printFigures(r bench.Report, output string) error {
	if output == asJSON {
		return a.printJSON(r)
	}
	t := newTable("Figure", "Measured", "Bar", "", "What")
	for _, g := range r.Figures {
		t.AppendRow([]any{g.Name, g.Measured(), g.Bound(), strings.Trim(g.Verdict(), "*"), g.What})
	}
	if err := a.printTable(t); err != nil {
		return err
	}
	a.note("on %s; %.0f s; other work kept %.1f cores busy", r.Machine, r.Seconds, r.OtherCores)
	return nil
}

// benchProduceCommand is the producer process of the memory figures.
func (a *app) benchProduceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "produce TOPIC", Short: "Log generated events to a topic", Hidden: true, Args: arguments(1, 1),
		RunE: a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			s, err := load(cmd)
			if err != nil {
				return err
			}
			d, err := findEndpoints(s, false)
			if err != nil {
				return err
			}
			events, _ := cmd.Flags().GetInt("events")
			size, _ := cmd.Flags().GetInt("event-bytes")
			seed, _ := cmd.Flags().GetUint64("seed")
			return bench.Produce(ctx, d.nats, args[0], events, size, seed)
		}),
	}
	cmd.Flags().Int("events", 1_000_000, "how many events")
	cmd.Flags().Int("event-bytes", 200, "about the size of an event")
	cmd.Flags().Uint64("seed", 1, "which events")
	return cmd
}
