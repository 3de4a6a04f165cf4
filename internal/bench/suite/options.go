package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/almanac-events/almanac/internal/bench"
)

// options are what to measure, and where it goes.
type options struct {
	almanac, data          string
	only                   string
	growth, load, json     bool
	users, tls             bool
	size                   bench.Size
	write, record, against string

	measures []bench.Measure
	growths  []bench.Growth
	points   []bench.LoadPoint
	loads    bench.LoadConfig
}

// usageError is a command line that does not work.
type usageError struct{ error }

// parse reads the command line, and refuses what cannot be measured before anything starts.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{size: bench.Full}
	f := flag.NewFlagSet("suite", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.almanac, "almanac", "bin/almanac", "the almanac program, for figures that need its processes")
	f.StringVar(&o.data, "data", "data", "servers get directories beside this one")
	f.StringVar(&o.only, "only", "", "only these, with commas between. Figures: "+strings.Join(bench.Names(), ", ")+
		". With --growth: "+strings.Join(bench.GrowthNames(), ", ")+". With --load: RATE or RATExTOPICS")
	f.BoolVar(&o.growth, "growth", false, "measure how costs grow with rows, shards, months, topics, lanes, producers and a meter's spaces")
	f.BoolVar(&o.load, "load", false, "measure what an event costs at steady loads (an hour and a half)")
	f.DurationVar(&o.loads.For, "load-for", 0, "how long each load is measured (default 10m)")
	f.DurationVar(&o.loads.Warm, "load-warm", 0, "how long each load is offered before (default 2m)")
	f.BoolVar(&o.users, "users", false, "NATS has users, as that of an up")
	f.BoolVar(&o.tls, "tls", false, "producers, and what else is a process of its own, reach NATS over TLS")
	f.BoolVar(&o.json, "json", false, "print JSON")
	quick := f.Bool("quick", false, "a twentieth of every size: to see that it works; the figures mean little")
	short := f.Bool("short", false, "two fifths of every size")
	f.StringVar(&o.write, "write", "", "write results into this directory too: JSON, and the tables of its README.md")
	f.StringVar(&o.record, "record", "", "write the figures into this file, for --against")
	f.StringVar(&o.against, "against", "", "compare the main ratios with those recorded in this file; fail when one fell by more than 20 %")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, usageError{err}
	}
	switch {
	case f.NArg() > 0:
		return nil, usageError{fmt.Errorf("%q: the suite takes options only", f.Arg(0))}
	case *quick && *short:
		return nil, usageError{errors.New("--quick and --short are two sizes: pass one of them")}
	case o.growth && o.load, (o.growth || o.load) && (o.against != "" || o.record != ""):
		return nil, usageError{errors.New("--growth and --load stand alone: pass each without the other, --record and --against")}
	case *quick:
		o.size = bench.Quick
	case *short:
		o.size = bench.Short
	}
	return o, o.choose()
}

// choose finds what --only names.
func (o *options) choose() (err error) {
	var names []string
	if o.only != "" {
		names = strings.Split(o.only, ",")
	}
	switch {
	case o.growth:
		o.growths, err = bench.SelectedGrowths(names)
	case o.load && names == nil:
		o.points = bench.LoadPoints()
	case o.load:
		o.points, err = bench.ParseLoadPoints(names)
	default:
		if names == nil && o.against != "" {
			names = bench.CheckNames()
		}
		o.measures, err = bench.Selected(names)
	}
	if err != nil {
		return usageError{fmt.Errorf("--only: %w", err)}
	}
	return nil
}
