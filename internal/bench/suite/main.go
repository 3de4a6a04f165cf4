package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/almanac-events/almanac/internal/bench"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/markdown"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == embedded.EngineCommand { // the engine is a child of this program
		os.Exit(embedded.EngineMain(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == bench.ProduceCommand {
		err = bench.ProduceMain(ctx, os.Args[2:], os.Stdout)
	} else {
		err = measure(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measure runs what the options name and prints it.
func measure(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.write != "" {
		if err := os.MkdirAll(o.write, 0o755); err != nil {
			return err
		}
	}
	var recorded bench.Report
	if o.against != "" { // before a quarter of an hour is spent
		if recorded, err = bench.ReadReport(o.against); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var secure *tls.Config
	if o.tls {
		dir, err := os.MkdirTemp("", "almanac-bench-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if secure, err = bench.MakeCertificate(dir); err != nil {
			return err
		}
	}
	note := func(text string) { _, _ = fmt.Fprintln(stderr, text) }
	s := &bench.Suite{Size: o.size, Binary: o.almanac, Producer: self, Environment: func(ctx context.Context) (*bench.Environment, error) {
		return bench.OpenEnvironment(ctx, bench.EnvironmentConfig{NextTo: o.data, Users: o.users, TLS: secure})
	}}
	switch {
	case o.growth:
		r, err := s.Growths(ctx, o.growths, note, func(r bench.GrowthReport) error { return written(o.write, r.Write) })
		return errors.Join(show(stdout, o.json, r, r.Markdown()), err, ctx.Err())
	case o.load:
		r, err := s.Loads(ctx, o.points, o.loads, note, func(r bench.LoadReport) error { return written(o.write, r.Write) })
		return errors.Join(show(stdout, o.json, r, r.Markdown()), err, ctx.Err())
	}
	r, err := s.Figures(ctx, o.measures, note)
	if len(r.Figures) == 0 || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	err = errors.Join(err, show(stdout, o.json, r, r.Markdown()))
	if o.record != "" {
		err = errors.Join(err, bench.WriteReport(o.record, r))
	}
	if o.write != "" {
		err = errors.Join(err, writeFigures(o, r))
	}
	if err != nil || o.against == "" {
		return errors.Join(err, missed(r, o.against))
	}
	compared, err := r.Fallen(recorded)
	if err == nil {
		note(fmt.Sprintf("%d ratios are within %.0f %% of the recorded ones", compared, bench.MaxFall*100))
	}
	return err
}

func written(dir string, write func(string) error) error {
	if dir == "" {
		return nil
	}
	return write(dir)
}

// writeFigures writes the results and their table. A run of --only some renews those and leaves the others as they are.
func writeFigures(o *options, r bench.Report) error {
	path := filepath.Join(o.write, "results.json")
	if old, err := bench.ReadReport(path); err == nil && o.only != "" {
		r = bench.Merged(old, r)
	}
	return errors.Join(bench.WriteReport(path, r), markdown.Section(filepath.Join(o.write, "README.md"), "figures", r.Markdown(), true))
}

// missed names the figures that missed their bar; those of a comparison have none.
func missed(r bench.Report, against string) error {
	var names []string
	for _, g := range r.Figures {
		if !g.Pass {
			names = append(names, g.Name)
		}
	}
	if against != "" || len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d figures missed their bar: %s", len(names), len(r.Figures), strings.Join(names, ", "))
}

func show(w io.Writer, asJSON bool, v any, table string) error {
	if !asJSON {
		_, err := fmt.Fprintln(w, table)
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
